"""Control flow whose course is known at import: choices, loops and scans become the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.loading import node_inputs, sorted_nodes
from smartmem_rules.graph.matching import NeedsConstant
from smartmem_rules.graph.weights import Values
from smartmem_rules.tensor.builtins import Unsupported

_MOST_STEPS = 4096
"""Unrolled loops with more steps make plans that nobody can wait for."""

Process = Callable[[Sequence[onnx.NodeProto], Collection[str]], None]
"""Imports nodes in order, given the tensors that are read."""


def has_body(node: onnx.NodeProto) -> bool:
    """Whether the node holds a subgraph."""
    kinds = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return any(attribute.type in kinds for attribute in node.attribute)


@dataclass
class ControlFlow:
    """Unfolds nodes with bodies into an import.

    Attributes:
        values: the known tensors; constants of the bodies are added.
        missing: tensors that could not be imported.
        process: imports nodes.
    """

    values: Values
    missing: Collection[str]
    process: Process

    def unfold(self, node: onnx.NodeProto, name: str) -> None:
        """Import what the node does.

        Raises:
            NeedsConstant: its course depends on a tensor that is not known.
            Unsupported: it takes too many steps, or is of a kind that cannot be unfolded.
        """
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        match node.op_type:
            case "If":
                self._choice(node, name, attributes)
            case "Loop":
                self._loop(node, name, attributes["body"])
            case "Scan" if "num_scan_inputs" in attributes and "directions" not in attributes:
                self._scan(node, name, attributes)
            case _:
                raise Unsupported("an operator with subgraphs that cannot be unrolled")

    def call(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        """Import a body in the node's place."""
        given = dict(zip([value.name for value in body.input], node.input, strict=False))
        self._name(self._body(body, f"{name}/", given), node.output)

    # --- the three forms ---

    def _choice(self, node: onnx.NodeProto, name: str, attributes: Mapping[str, onnx.GraphProto]) -> None:
        condition = node.input[0]
        branches = [attributes["then_branch"], attributes["else_branch"]]
        if condition in self.values:
            taken = branches[0] if bool(self.values[condition].reshape(-1)[0]) else branches[1]
            self._name(self._body(taken, f"{name}/", {}), node.output)
            return
        # bodies have no effects: both can be computed, and the results chosen from
        both = [self._body(branch, f"{name}/{number}/", {}) for number, branch in enumerate(branches)]
        for output, then, otherwise in zip(node.output, *both, strict=True):
            if self._shape(then) != self._shape(otherwise):
                raise NeedsConstant(f"its branches give different shapes and {condition!r} is computed", {condition})
            self._one("Where", [condition, then, otherwise], output)

    def _loop(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        limit, condition = [*node.input, "", ""][:2]
        for known in filter(None, (limit, condition)):
            if known not in self.values:
                raise NeedsConstant(f"its number of steps depends on {known!r}, which is computed", {known})
        steps = int(self.values[limit].reshape(-1)[0]) if limit else _MOST_STEPS + 1
        going = bool(self.values[condition].reshape(-1)[0]) if condition else True
        states = list(node.input[2:])
        collected: list[list[str]] = [[] for _ in node.output[len(states) :]]
        step = 0
        while going and step < steps:
            if step >= _MOST_STEPS:
                raise Unsupported(f"a loop of more than {_MOST_STEPS} steps")
            prefix = f"{name}/{step}/"
            self.values[f"{prefix}step"] = np.asarray(step, np.int64)
            self.values[f"{prefix}going"] = np.asarray(True)
            names = [value.name for value in body.input]
            given = dict(zip(names, [f"{prefix}step", f"{prefix}going", *states], strict=True))
            going_on, *results = self._body(body, prefix, given)
            if going_on not in self.values:
                raise Unsupported("a loop whose end depends on computed data")
            going = bool(self.values[going_on].reshape(-1)[0])
            states = results[: len(states)]
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
            step += 1
        self._name(states, node.output[: len(states)])
        self._stack(name, collected, node.output[len(states) :], [0] * len(collected))

    def _scan(self, node: onnx.NodeProto, name: str, attributes: Mapping[str, object]) -> None:
        body = attributes["body"]
        assert isinstance(body, onnx.GraphProto)
        scanned = int(str(attributes["num_scan_inputs"]))
        states, sources = list(node.input[:-scanned]), list(node.input[-scanned:])
        outputs = list(node.output[len(states) :])
        axes = _integers(attributes, "scan_input_axes", scanned)
        backward = _integers(attributes, "scan_input_directions", scanned)
        if len(body.input) != len(node.input):
            raise Unsupported("the scan over batches of opset 8")
        steps = self._shape(sources[0])[axes[0]]
        collected: list[list[str]] = [[] for _ in outputs]
        if not 0 < steps <= _MOST_STEPS:
            raise Unsupported(f"a scan of {steps} steps")
        for step in range(steps):
            prefix = f"{name}/{step}/"
            parts = []
            for number, (source, axis, reverse) in enumerate(zip(sources, axes, backward, strict=True)):
                place, part = f"{prefix}place{number}", f"{prefix}part{number}"
                self.values[place] = np.asarray(steps - 1 - step if reverse else step, np.int64)
                self._one("Gather", [source, place], part, axis=axis)
                parts.append(part)
            given = dict(zip([value.name for value in body.input], [*states, *parts], strict=True))
            results = self._body(body, prefix, given)
            states = results[: len(states)]
            for gathered, result in zip(collected, results[len(states) :], strict=True):
                gathered.append(result)
        self._name(states, node.output[: len(states)])
        for gathered, reverse in zip(
            collected, _integers(attributes, "scan_output_directions", len(outputs)), strict=True
        ):
            if reverse:
                gathered.reverse()
        self._stack(name, collected, outputs, _integers(attributes, "scan_output_axes", len(outputs)))

    # --- bodies ---

    def _body(self, graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[str]:
        """Import a body under new names; the names of its outputs."""
        names = dict(given)
        for tensor in graph.initializer:
            names[tensor.name] = prefix + tensor.name
            self.values.add(names[tensor.name], tensor)
        inner = {output for node in graph.node for output in node.output if output}
        names.update({output: prefix + output for output in inner})
        outputs = [names.get(value.name, value.name) for value in graph.output]
        nodes = []
        for number, node in enumerate(graph.node):
            renamed = renamed_node(node, names)
            renamed.name = prefix + (node.name or f"{node.op_type}_{number}")
            nodes.append(renamed)
        produced = {output for node in nodes for output in node.output}
        outside = {name for node in nodes for name in node_inputs(node)} - produced
        wanted = [name for name in outputs if name in produced]
        self.process(
            sorted_nodes(nodes, outside, wanted), {name for node in nodes for name in node_inputs(node)} | set(outputs)
        )
        return outputs

    def _name(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        for source, target in zip(sources, targets, strict=True):
            if target:
                self._one("Identity", [source], target)

    def _stack(
        self, name: str, collected: Sequence[Sequence[str]], outputs: Sequence[str], axes: Sequence[int]
    ) -> None:
        """Join what the steps gave along a new axis."""
        for parts, output, axis in zip(collected, outputs, axes, strict=True):
            if not output:
                continue
            if not parts:
                raise Unsupported("a loop of no steps gives nothing to stack")
            self.values[f"{output}/axis"] = np.asarray([axis], np.int64)
            widened = []
            for number, part in enumerate(parts):
                widened.append(f"{name}/{output}/{number}")
                self._one("Unsqueeze", [part, f"{output}/axis"], widened[-1])
            self._one("Concat", widened, output, axis=axis)

    def _one(self, operator: str, inputs: list[str], output: str, axis: int | None = None) -> None:
        node = helper.make_node(operator, inputs, [output], name=f"{output}/{operator}")
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self.process([node], {output})

    def _shape(self, tensor: str) -> tuple[int, ...]:
        if tensor in self.missing:
            raise Unsupported("a tensor of its body cannot be imported")
        return self.values.types[tensor].shape


def renamed_node(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of the node over other tensor names; what its own subgraphs take from outside is renamed too."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.input[:], copy.output[:]
    copy.input.extend(names.get(name, name) for name in node.input)
    copy.output.extend(names.get(name, name) for name in node.output)
    for attribute in copy.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            _rename_captured(attribute.g, names)
    return copy


def _rename_captured(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {output for node in graph.node for output in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    nodes = [renamed_node(node, outer) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in graph.output:
        value.name = outer.get(value.name, value.name)


def _integers(attributes: Mapping[str, object], name: str, count: int) -> list[int]:
    given = attributes.get(name)
    return [int(v) for v in given] if isinstance(given, list) else [0] * count
