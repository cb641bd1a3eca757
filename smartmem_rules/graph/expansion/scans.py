"""Scans: bodies that go along axes of tensors, unrolled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from smartmem_rules.graph.expansion.bodies import MOST_STEPS, Bodies
from smartmem_rules.graph.expansion.forms import body_inputs, entries_of, scanned_inputs
from smartmem_rules.graph.matching import Explained
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """A body that goes along axes of tensors, with the number of tensors that every step gives."""

    body: onnx.GraphProto
    axes: Sequence[int]
    backward: Sequence[int]
    results: int


@dataclass(frozen=True)
class Scans:
    """Unrolls scans; the length of what is scanned says how many steps there are."""

    bodies: Bodies

    def unrolled(
        self, node: onnx.NodeProto, name: str, attributes: Mapping[str, object], body: onnx.GraphProto
    ) -> None:
        """Import a scan whose states and results have no batch.

        Raises:
            Unsupported: it has no steps or too many, or the scanned axes differ in their extents.
        """
        scanned = scanned_inputs(attributes)
        states, sources = list(node.input[:-scanned]), list(node.input[-scanned:])
        outputs = list(node.output[len(states) :])
        steps = _Steps(
            body=body,
            axes=entries_of(attributes, "scan_input_axes", scanned),
            backward=entries_of(attributes, "scan_input_directions", scanned),
            results=len(outputs),
        )
        states, collected = self._scanned(name, steps, states, sources)
        self.bodies.name_outputs(states, node.output[: len(states)])
        for gathered, reverse in zip(
            collected, entries_of(attributes, "scan_output_directions", len(outputs)), strict=True
        ):
            if reverse:
                gathered.reverse()
        self.bodies.stack(name, collected, outputs, entries_of(attributes, "scan_output_axes", len(outputs)))

    def _scanned(
        self, name: str, scan: _Steps, states: list[str], sources: Sequence[str]
    ) -> tuple[list[str], list[list[str]]]:
        """The last states, and what every step gives."""
        steps = self.bodies.length(sources, scan.axes)
        collected: list[list[str]] = [[] for _ in range(scan.results)]
        if not 0 < steps <= MOST_STEPS:
            raise Explained(
                f"a scan of {steps} steps; it can have 1 to {MOST_STEPS}, as each is a copy of its body: scan a "
                "shorter axis, or write what it does as operators of whole tensors"
            )
        for step in range(steps):
            prefix = f"{name}/{step}/"
            parts = []
            for number, (source, axis, reverse) in enumerate(zip(sources, scan.axes, scan.backward, strict=True)):
                parts.append(self._part(source, steps - 1 - step if reverse else step, f"{prefix}part{number}", axis))
            given = dict(zip(body_inputs(scan.body), [*states, *parts], strict=True))
            results = self.bodies.body(scan.body, prefix, given)
            states = results[: len(states)]
            for gathered, result in zip(collected, results[len(states) :], strict=True):
                gathered.append(result)
        return states, collected

    def _part(self, source: str, place: int, name: str, axis: int) -> str:
        """A slice of a tensor without the axis that it is taken along."""
        return self.bodies.computed("Gather", [source, self.bodies.constant(place, f"{name}/place")], name, axis=axis)

    def of_batches(
        self, node: onnx.NodeProto, name: str, attributes: Mapping[str, object], body: onnx.GraphProto
    ) -> None:
        """The scan of opset 8: every element of the batch, axis 0, is scanned along the axis behind it."""
        lengths, *given = node.input
        if lengths:
            raise Unsupported("a scan of sequences of different lengths (sequence_lens)")
        scanned = scanned_inputs(attributes)
        states = len(given) - scanned
        backward = entries_of(attributes, "directions", scanned)
        scan = _Steps(body=body, axes=[0] * scanned, backward=backward, results=len(node.output) - states)
        batch: list[list[str]] = [[] for _ in node.output]
        elements = self.bodies.length(given, [0] * len(given))
        for number in range(elements):
            prefix = f"{name}/batch{number}"
            parts = [self._part(one, number, f"{prefix}/given{k}", 0) for k, one in enumerate(given)]
            last, collected = self._scanned(prefix, scan, parts[:states], parts[states:])
            joined = [self.bodies.new(f"{prefix}/result{k}") for k in range(scan.results)]
            self.bodies.stack(prefix, collected, joined, [0] * scan.results)
            for gathered, result in zip(batch, [*last, *joined], strict=True):
                gathered.append(result)
        self.bodies.stack(name, batch, node.output, [0] * len(node.output))
