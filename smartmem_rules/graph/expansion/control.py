"""Control flow whose course is known at import: choices, loops and scans become the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.expansion.forms import (
    body_inputs,
    branches_of,
    entries_of,
    loop_body,
    scan_body,
    scanned_inputs,
)
from smartmem_rules.graph.loading import node_inputs, sorted_nodes
from smartmem_rules.graph.matching import NeedsConstant
from smartmem_rules.graph.weights import Values
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.primitives import storage_dtype

_MOST_STEPS = 4096
"""Unrolled loops with more steps make plans that nobody can wait for."""
_MOST_GUARDED = 64
"""Loops that may end earlier compute all of their steps, so that many would be slower than they need to be."""

Process = Callable[[Sequence[onnx.NodeProto], Collection[str]], None]
"""Imports nodes in order, given the tensors that are read."""


def has_body(node: onnx.NodeProto) -> bool:
    """Whether the node holds a subgraph."""
    kinds = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return any(attribute.type in kinds for attribute in node.attribute)


@dataclass
class _Course:
    """How a loop goes: whether there is a next step for all that is known, and what says so while the model runs.

    `steps` holds, for every step so far, the tensor that says whether it is taken, or nothing where it always is.
    """

    going: bool
    live: str = ""
    steps: list[str] = field(default_factory=list)

    @property
    def counted(self) -> bool:
        """Whether the number of steps depends on data."""
        return any(self.steps)


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """A body that goes along axes of tensors, with the number of tensors that every step gives."""

    body: onnx.GraphProto
    axes: Sequence[int]
    backward: Sequence[int]
    results: int


@dataclass
class ControlFlow:
    """Unfolds nodes with bodies into an import.

    Attributes:
        values: the known tensors; constants of the bodies are added.
        missing: tensors that could not be imported.
        process: imports nodes.
        sized: notes that an axis of a tensor has as many elements as a scalar tensor says.
    """

    values: Values
    missing: Collection[str]
    process: Process
    sized: Callable[[str, int, str], None]

    def unfold(self, node: onnx.NodeProto, name: str) -> None:
        """Import what the node does.

        Raises:
            NeedsConstant: its course depends on a tensor that is not known.
            Unsupported: it takes too many steps, or is of a kind that cannot be unfolded.
        """
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        match node.op_type:
            case "If":
                self._choice(node, name, branches_of(node, attributes))
            case "Loop":
                self._loop(node, name, loop_body(node, attributes))
            case "Scan":
                scanned = scanned_inputs(attributes)
                body = scan_body(node, attributes, scanned)
                unfolded = self._scan if len(node.input) == len(body_inputs(body)) else self._batched_scan
                unfolded(node, name, attributes, body)
            case _:
                raise Unsupported("an operator with subgraphs that cannot be unrolled")

    def call(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        """Import a body in the node's place."""
        given = dict(zip([value.name for value in body.input], node.input, strict=False))
        self._name(self.body(body, f"{name}/", given), node.output)

    # --- the three forms ---

    def _choice(self, node: onnx.NodeProto, name: str, branches: Sequence[onnx.GraphProto]) -> None:
        condition = node.input[0]
        if condition in self.values:
            taken = branches[0] if self._only(condition) else branches[1]
            self._name(self.body(taken, f"{name}/", {}), node.output)
            return
        # bodies have no effects: both can be computed, and the results chosen from
        both = [self.body(branch, f"{name}/{number}/", {}) for number, branch in enumerate(branches)]
        condition = self._scalar(condition, f"{name}/condition")
        for output, then, otherwise in zip(node.output, *both, strict=True):
            if self._shape(then) != self._shape(otherwise):
                raise NeedsConstant(
                    f"its branches give different shapes and {node.input[0]!r} is computed", {node.input[0]}
                )
            self._one("Where", [condition, then, otherwise], output)

    def _loop(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        limit, condition = [*node.input, "", ""][:2]
        if limit and limit not in self.values:
            raise NeedsConstant(f"its number of steps depends on {limit!r}, which is computed", {limit})
        steps = self._only(limit) if limit else _MOST_STEPS + 1
        course = _Course(going=bool(self._only(condition)) if condition in self.values else True)
        if condition and condition not in self.values:
            course.live = self._scalar(condition, f"{name}/condition")
        entered = course.live
        start = states = list(node.input[2:])
        collected: list[list[str]] = [[] for _ in node.output[len(states) :]]
        step = 0
        while course.going and step < steps:
            self._bound(step, steps, course)
            prefix = f"{name}/{step}/"
            self.values[f"{prefix}step"] = np.asarray(step, np.int64)
            self.values[f"{prefix}going"] = np.asarray(True)
            at, given = f"{prefix}step", states
            if course.live:  # a step that is not taken computes what the first one does, so that it reads what exists
                self.values[f"{prefix}first"] = np.asarray(0, np.int64)
                at = self._chosen(course.live, at, f"{prefix}first", f"{prefix}at")
                given = [
                    self._chosen(course.live, *pair, f"{prefix}in/{k}")
                    for k, pair in enumerate(zip(states, start, strict=True))
                ]
            going_on, *results = self._step(body, prefix, at, given)
            if course.live == entered != "" and any(result in self.missing for result in results):
                raise NeedsConstant(f"its body has to know the step, and so whether {condition!r} holds", {condition})
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
            after = results[: len(states)]
            if course.live:
                after = [
                    self._chosen(course.live, *pair, f"{prefix}out/{k}")
                    for k, pair in enumerate(zip(after, states, strict=True))
                ]
            states = after
            course.steps.append(course.live)
            self._go_on(course, going_on, prefix)
            step += 1
        self._name(states, node.output[: len(states)])
        outputs = node.output[len(states) :]
        if not step and any(outputs):
            self._nothing(body, f"{name}/never/", start, outputs)
            return
        self._stack(
            name,
            [parts * 2 if course.counted and len(parts) == 1 else parts for parts in collected],
            outputs,
            [0] * len(collected),
        )
        if course.counted and any(outputs):
            count = self._count(course, f"{name}/steps")
            for output in filter(None, outputs):
                self.sized(output, 0, count)

    def _bound(self, step: int, steps: int, course: _Course) -> None:
        if course.live and steps > _MOST_GUARDED:
            raise Unsupported(
                f"its end depends on computed data; such a loop is unrolled for up to {_MOST_GUARDED} steps, and this "
                f"one may take {'any number' if steps > _MOST_STEPS else steps}: give it a smaller trip count"
            )
        if step >= _MOST_STEPS:
            raise Unsupported(f"a loop of more than {_MOST_STEPS} steps")

    def _step(self, body: onnx.GraphProto, prefix: str, at: str, states: Sequence[str]) -> list[str]:
        names = body_inputs(body)
        return self.body(body, prefix, dict(zip(names, [at, f"{prefix}going", *states], strict=True)))

    def _go_on(self, course: _Course, going_on: str, prefix: str) -> None:
        """Enter what a step says about the next one."""
        if going_on in self.values:
            course.going = bool(self._only(going_on))
            return
        going_on = self._scalar(going_on, f"{prefix}condition")
        if course.live:
            self._one("And", [course.live, going_on], f"{prefix}live")
            going_on = f"{prefix}live"
        course.live = going_on

    def _scalar(self, condition: str, output: str) -> str:
        """A condition without axes: one of shape [1] gives what is chosen no further axis."""
        if condition in self.missing or self._shape(condition) == ():
            return condition
        self.values[f"{output}/shape"] = np.zeros(0, np.int64)
        self._one("Reshape", [condition, f"{output}/shape"], output)
        return output

    def _chosen(self, condition: str, then: str, otherwise: str, output: str) -> str:
        """One of two tensors, while the model runs."""
        if self._shape(then) != self._shape(otherwise):
            raise Unsupported("its end depends on computed data, and a state changes its shape from step to step")
        self._one("Where", [condition, then, otherwise], output)
        return output

    def _count(self, course: _Course, output: str) -> str:
        """How many steps are taken, a scalar tensor."""
        self.values[f"{output}/known"] = np.asarray(sum(not live for live in course.steps), np.int64)
        total = f"{output}/known"
        for number, live in enumerate(filter(None, course.steps)):
            taken, more = f"{output}/{number}/taken", f"{output}/{number}"
            cast = helper.make_node("Cast", [live], [taken], f"{taken}/Cast", to=onnx.TensorProto.INT64)
            self.process([cast], {taken})
            self._one("Add", [total, taken], more)
            total = more
        return total

    def _nothing(self, body: onnx.GraphProto, prefix: str, states: Sequence[str], outputs: Sequence[str]) -> None:
        """What a loop of no steps gives: as many elements as none, of the shape that a step would give."""
        self.values[f"{prefix}step"] = np.asarray(0, np.int64)
        self.values[f"{prefix}going"] = np.asarray(True)
        _, *results = self._step(body, prefix, f"{prefix}step", states)
        for output, result in zip(outputs, results[len(states) :], strict=True):
            if output:
                shape = self._shape(result)
                self.values[output] = np.zeros((0, *shape), storage_dtype(self.values.types[result].dtype))

    def _scan(self, node: onnx.NodeProto, name: str, attributes: Mapping[str, object], body: onnx.GraphProto) -> None:
        scanned = scanned_inputs(attributes)
        states, sources = list(node.input[:-scanned]), list(node.input[-scanned:])
        outputs = list(node.output[len(states) :])
        steps = _Scan(
            body=body,
            axes=entries_of(attributes, "scan_input_axes", scanned),
            backward=entries_of(attributes, "scan_input_directions", scanned),
            results=len(outputs),
        )
        states, collected = self._scanned(name, steps, states, sources)
        self._name(states, node.output[: len(states)])
        for gathered, reverse in zip(
            collected, entries_of(attributes, "scan_output_directions", len(outputs)), strict=True
        ):
            if reverse:
                gathered.reverse()
        self._stack(name, collected, outputs, entries_of(attributes, "scan_output_axes", len(outputs)))

    def _scanned(
        self, name: str, scan: _Scan, states: list[str], sources: Sequence[str]
    ) -> tuple[list[str], list[list[str]]]:
        """The last states, and what every step gives."""
        steps = self._length(sources, scan.axes)
        collected: list[list[str]] = [[] for _ in range(scan.results)]
        if not 0 < steps <= _MOST_STEPS:
            raise Unsupported(f"a scan of {steps} steps")
        for step in range(steps):
            prefix = f"{name}/{step}/"
            parts = []
            for number, (source, axis, reverse) in enumerate(zip(sources, scan.axes, scan.backward, strict=True)):
                parts.append(self._part(source, steps - 1 - step if reverse else step, f"{prefix}part{number}", axis))
            given = dict(zip(body_inputs(scan.body), [*states, *parts], strict=True))
            results = self.body(scan.body, prefix, given)
            states = results[: len(states)]
            for gathered, result in zip(collected, results[len(states) :], strict=True):
                gathered.append(result)
        return states, collected

    def _part(self, source: str, place: int, output: str, axis: int) -> str:
        """A slice of a tensor without the axis that it is taken along."""
        self.values[f"{output}/place"] = np.asarray(place, np.int64)
        self._one("Gather", [source, f"{output}/place"], output, axis=axis)
        return output

    def _batched_scan(
        self, node: onnx.NodeProto, name: str, attributes: Mapping[str, object], body: onnx.GraphProto
    ) -> None:
        """The scan of opset 8: every element of the batch, axis 0, is scanned along the axis behind it."""
        lengths, *given = node.input
        if lengths:
            raise Unsupported("a scan of sequences of different lengths (sequence_lens)")
        scanned = scanned_inputs(attributes)
        states = len(given) - scanned
        backward = entries_of(attributes, "directions", scanned)
        scan = _Scan(body=body, axes=[0] * scanned, backward=backward, results=len(node.output) - states)
        batch: list[list[str]] = [[] for _ in node.output]
        elements = self._length(given, [0] * len(given))
        for number in range(elements):
            prefix = f"{name}/batch{number}"
            parts = [self._part(one, number, f"{prefix}/given{k}", 0) for k, one in enumerate(given)]
            last, collected = self._scanned(prefix, scan, parts[:states], parts[states:])
            joined = [f"{prefix}/result{k}" for k in range(scan.results)]
            self._stack(prefix, collected, joined, [0] * scan.results)
            for gathered, result in zip(batch, [*last, *joined], strict=True):
                gathered.append(result)
        self._stack(name, batch, node.output, [0] * len(node.output))

    # --- bodies ---

    def body(self, graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[str]:
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

    def _name(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        if len(targets) > len(sources):
            raise Unsupported(f"it has {len(targets)} outputs, and its body gives {len(sources)}")
        for source, target in zip(sources, targets, strict=False):
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

    def _only(self, tensor: str) -> int:
        """The single element of a known tensor."""
        value = self.values[tensor]
        if value.size != 1:
            raise Unsupported(f"{tensor!r} says where to go on, and has {value.size} elements")
        return int(value.reshape(-1)[0])

    def _length(self, tensors: Sequence[str], axes: Sequence[int]) -> int:
        """The extent of an axis of each tensor, which is that of all."""
        shapes = [self._shape(tensor) for tensor in tensors]
        for shape, axis in zip(shapes, axes, strict=True):
            if not -len(shape) <= axis < len(shape):
                raise Unsupported(f"it scans axis {axis} of a tensor of {len(shape)} axes")
        first, *others = sorted({shape[axis] for shape, axis in zip(shapes, axes, strict=True)})
        if others:
            raise Unsupported(f"the axes that it scans have {', '.join(map(str, [first, *others]))} elements")
        return first

    def _shape(self, tensor: str) -> tuple[int, ...]:
        if tensor in self.missing:
            raise Unsupported("a tensor of its body cannot be imported")
        if tensor not in self.values.types:
            raise Unsupported("it chooses among sequences or optional values while the model runs")
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
