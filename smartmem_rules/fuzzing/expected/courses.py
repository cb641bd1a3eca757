"""Models with bodies or sequences as straight ones: the nodes that the model computes at given inputs, in order.

`If`, `Loop`, `Scan` (ONNX's control flow operators), sequences, optional values and the model's own functions are
followed at the nodes' own element types.  The judge's reference then knows the steps, and may round each of them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.lists import Lists
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, NoReference, constant_value

MOST_NODES = 20_000
"""A course of more nodes is not followed."""
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def straightened(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> onnx.ModelProto:
    """The model without bodies, sequences and functions, right for these inputs alone.

    Raises:
        NoReference: a node on the way cannot be computed, or is of a kind that is not followed.
    """
    graph = model.graph
    course = _start(model, feeds)
    if not any(
        bodies_of(node) or (node.domain, node.op_type) in course.functions or course.lists.takes(node)
        for node in graph.node
    ):
        return model
    names: dict[str, str] = {}
    with np.errstate(all="ignore"):
        course.walk(graph.node, names, "")
    for output in graph.output:
        if names.get(output.name, output.name) != output.name:
            course.step(helper.make_node("Identity", [names[output.name]], [output.name]))
    made = helper.make_graph(
        course.nodes,
        graph.name,
        graph.input,
        graph.output,
        [numpy_helper.from_array(value, name) for name, value in course.constants.items()],
    )
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


def longest_loop(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> int:
    """The most steps that a `Loop` of the model takes at these inputs.

    Raises:
        NoReference: a node on the way cannot be computed, or is of a kind that is not followed.
    """
    course = _start(model, feeds)
    with np.errstate(all="ignore"):
        course.walk(model.graph.node, {}, "")
    return course.longest


def _start(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Course:
    functions = {(f.domain, f.name): f for f in model.functions}
    constants = {t.name: np.asarray(numpy_helper.to_array(t)) for t in model.graph.initializer}
    return Course(model.opset_import, functions, {**constants, **feeds}, constants)


def bodies_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds."""
    return [g for a in node.attribute if a.type in _GRAPHS for g in ((a.g,) if a.HasField("g") else a.graphs)]


class Course:
    """Nodes without bodies, computed as they are found.

    Args:
        functions: the model's own, by domain and name.
        values: the tensors from which nodes start.
        constants: those of them that are the same whatever the inputs.

    Attributes:
        nodes: what was found so far, in the order in which it is computed.
        values: all tensors so far, at their own element types.
        constants: the constants of the bodies too.
        lists: the sequences so far.
        longest: the most steps that a loop took.
    """

    def __init__(
        self,
        opsets: Sequence[onnx.OperatorSetIdProto],
        functions: Mapping[tuple[str, str], onnx.FunctionProto],
        values: Mapping[str, Array],
        constants: Mapping[str, Array],
    ) -> None:
        self.opsets = opsets
        self.functions = functions
        self.values: dict[str, Array | None] = {"": None, **values}
        self.constants = dict(constants)
        self.nodes: list[onnx.NodeProto] = []
        self.lists = Lists(value=self.array, constant=self.constant, step=self.step, joined=self._joined)
        self.longest = 0
        self._bodies = 0

    def walk(self, nodes: Sequence[onnx.NodeProto], names: dict[str, str], prefix: str) -> None:
        """Follow nodes.

        Args:
            names: what a body calls a tensor, and the tensor's name here; the nodes' results are added.
            prefix: put before the names of results.
        """
        for node in nodes:
            function = self.functions.get((node.domain, node.op_type))
            if function is not None:
                self._call(node, function, names)
            elif not bodies_of(node):
                renamed = copy.deepcopy(node)
                renamed.ClearField("input")
                renamed.input.extend(names.get(n, n) for n in node.input)
                if self.lists.takes(renamed):
                    names[node.output[0]] = self.lists.follow(renamed, prefix + node.output[0])
                    continue
                for place, output in enumerate(node.output):
                    if output:
                        names[output] = renamed.output[place] = prefix + output
                self.step(renamed)
            elif node.op_type in ("If", "Loop", "Scan", "SequenceMap"):
                ways = {"If": self._choice, "Loop": self._loop, "Scan": self._scan, "SequenceMap": self._map}
                ways[node.op_type](node, names)
            else:
                raise NoReference(f"{node.op_type} has a graph of its own")

    def step(self, node: onnx.NodeProto) -> None:
        """Compute one node without a body, whose operands are known.

        Raises:
            NoReference: nobody computes the node, or the course has too many nodes.
        """
        if len(self.nodes) >= MOST_NODES:
            raise NoReference(f"a course of more than {MOST_NODES} nodes")
        results = NodeRunner(node, self.opsets, self.constants).native([self.values[n] for n in node.input])
        self.values.update(zip([n for n in node.output if n], results, strict=True))
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            self.constants[node.output[0]] = constant_value(node)
        else:
            self.nodes.append(node)

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = self.values[name] = value
        return name

    # --- bodies ---

    def _body(self, body: onnx.GraphProto, names: Mapping[str, str], given: Sequence[str]) -> list[str]:
        """The results of a body at tensors; `names` are those that it takes from outside."""
        self._bodies += 1
        prefix = f"body{self._bodies}/"
        inner = {**names, **dict(zip([i.name for i in body.input], given, strict=True))}
        for tensor in body.initializer:
            inner[tensor.name] = self.constant(prefix + tensor.name, np.asarray(numpy_helper.to_array(tensor)))
        self.walk(body.node, inner, prefix)
        return [inner.get(o.name, o.name) for o in body.output]

    def _call(self, node: onnx.NodeProto, function: onnx.FunctionProto, names: dict[str, str]) -> None:
        self._bodies += 1
        prefix = f"body{self._bodies}/"
        operands = [names.get(n, n) for n in node.input]
        operands += [""] * (len(function.input) - len(operands))
        inner = dict(zip(function.input, operands, strict=True))
        given = {a.name: a for a in function.attribute_proto} | {a.name: a for a in node.attribute}
        self.walk([_with_attributes(n, given) for n in function.node], inner, prefix)
        for output, result in zip(node.output, function.output, strict=False):
            if output:
                names[output] = inner[result]

    def _choice(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        taken = "then_branch" if self._number(names.get(node.input[0], node.input[0])) else "else_branch"
        results = self._body(_graph(node, taken), names, [])
        _name(node, names, results)

    def _loop(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        body = _graph(node, "body")
        limit, condition, *states = [names.get(n, n) for n in [*node.input, "", ""][: max(2, len(node.input))]]
        steps = self._number(limit) if limit else None
        going = bool(self._number(condition)) if condition else True
        start = list(states)
        collected: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(states))]
        step = 0
        while going and (steps is None or step < steps):
            going_on, *results = self._body(body, names, [*self._counted(step), *states])
            states = results[: len(states)]
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
            going, step = bool(self._number(going_on)), step + 1
            self.longest = max(self.longest, step)
        stacked = self._stacked(collected, [0] * len(collected)) if step else self._nothing(body, names, start)
        _name(node, names, [*states, *stacked])

    def _counted(self, step: int) -> list[str]:
        prefix = f"step{self._bodies}/"
        return [
            self.constant(f"{prefix}number", np.asarray(step, np.int64)),
            self.constant(f"{prefix}going", np.asarray(True)),
        ]

    def _nothing(self, body: onnx.GraphProto, names: Mapping[str, str], states: Sequence[str]) -> list[str]:
        """What a loop of no steps gives: no element of the shape that a step would give."""
        kept = len(self.nodes)
        _, *results = self._body(body, names, [*self._counted(0), *states])
        del self.nodes[kept:]
        made = []
        for result in results[len(states) :]:
            value = self.array(result)
            made.append(self.constant(f"{result}/never", np.zeros((0, *value.shape), value.dtype)))
        return made

    def _scan(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        body, count = _graph(node, "body"), int(_integers(node, "num_scan_inputs", [0])[0])
        operands = [names.get(n, n) for n in node.input]
        states, sources = operands[:-count], operands[-count:]
        if len(operands) != len(body.input):
            raise NoReference("a Scan of opset 8")
        axes = _integers(node, "scan_input_axes", [0] * count)
        backward = _integers(node, "scan_input_directions", [0] * count)
        results = len(body.output) - len(states)
        collected: list[list[str]] = [[] for _ in range(results)]
        steps = self.array(sources[0]).shape[axes[0]]
        if not steps:
            raise NoReference("a Scan of no steps")
        for step in range(steps):
            parts = [
                self._part(source, axis, steps - 1 - step if reverse else step)
                for source, axis, reverse in zip(sources, axes, backward, strict=True)
            ]
            made = self._body(body, names, [*states, *parts])
            states = made[: len(states)]
            for gathered, result in zip(collected, made[len(states) :], strict=True):
                gathered.append(result)
        for gathered, reverse in zip(collected, _integers(node, "scan_output_directions", [0] * results), strict=True):
            if reverse:
                gathered.reverse()
        stacked = self._stacked(collected, _integers(node, "scan_output_axes", [0] * results))
        _name(node, names, [*states, *stacked])

    def _map(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        body = _graph(node, "body")
        operands = [names.get(n, n) for n in node.input]
        rows = [self.lists.members.get(n) for n in operands]
        steps = len(rows[0] or [])
        if any(row is not None and len(row) < steps for row in rows):
            raise NoReference("sequences of different lengths")
        collected: list[list[str]] = [[] for _ in body.output]
        for step in range(steps):
            given = [n if row is None else row[step] for n, row in zip(operands, rows, strict=True)]
            for gathered, result in zip(collected, self._body(body, names, given), strict=True):
                gathered.append(result)
        self._bodies += 1
        made = [f"map{self._bodies}/{place}" for place in range(len(collected))]
        self.lists.members.update(zip(made, collected, strict=True))
        _name(node, names, made)

    # --- tensors ---

    def _part(self, source: str, axis: int, place: int) -> str:
        self._bodies += 1
        output = f"part{self._bodies}"
        index = self.constant(f"{output}/place", np.asarray(place, np.int64))
        self.step(helper.make_node("Gather", [source, index], [output], axis=axis))
        return output

    def _stacked(self, collected: Sequence[Sequence[str]], axes: Sequence[int]) -> list[str]:
        """What the steps gave, joined along a new axis."""
        return [self._joined(parts, axis) for parts, axis in zip(collected, axes, strict=True)]

    def _joined(self, parts: Sequence[str], axis: int) -> str:
        self._bodies += 1
        output = f"stack{self._bodies}"
        shape = list(self.array(parts[0]).shape)
        shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, 1)
        wanted = self.constant(f"{output}/shape", np.asarray(shape, np.int64))
        zero: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
        for number, part in enumerate(parts):
            self.step(helper.make_node("Reshape", [part, wanted], [f"{output}/{number}"], **zero))
        rows = [f"{output}/{number}" for number in range(len(parts))]
        self.step(helper.make_node("Concat", rows, [output], axis=axis))
        return output

    def array(self, name: str) -> Array:
        """The value of a tensor.

        Raises:
            NoReference: the tensor is an operand that is left out.
        """
        value = self.values[name]
        if value is None:
            raise NoReference(f"{name!r} is needed and absent")
        return value

    def _number(self, name: str) -> int:
        return int(self.array(name).reshape(-1)[0])


def _name(node: onnx.NodeProto, names: dict[str, str], results: Sequence[str]) -> None:
    """Note which tensors a node's outputs are."""
    names.update({output: result for output, result in zip(node.output, results, strict=False) if output})


def _graph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    graph: onnx.GraphProto = next(given.g for given in node.attribute if given.name == name)
    return graph


def _integers(node: onnx.NodeProto, name: str, default: list[int]) -> list[int]:
    given = next((a for a in node.attribute if a.name == name), None)
    if given is None:
        return default
    return list(given.ints) if given.type == onnx.AttributeProto.INTS else [given.i]


def _with_attributes(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """A function's node with the attributes that the call gives it; those that the call leaves out are absent."""
    changed = copy.deepcopy(node)
    changed.ClearField("attribute")
    for one in node.attribute:
        if not one.ref_attr_name:
            changed.attribute.append(one)
        elif one.ref_attr_name in given:
            changed.attribute.append(given[one.ref_attr_name])
            changed.attribute[-1].name = one.name
    return changed


def captured(node: onnx.NodeProto) -> Iterator[str]:
    """The tensors from outside that a node's bodies read."""
    for graph in bodies_of(node):
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        for inner in graph.node:
            yield from (n for n in (*inner.input, *captured(inner)) if n and n not in own)
            own.update(inner.output)
        yield from (o.name for o in graph.output if o.name not in own)
