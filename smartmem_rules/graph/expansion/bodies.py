"""Bodies of control flow in an import: their nodes under new names, and the nodes that join what bodies give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.loading import node_inputs, sorted_nodes
from smartmem_rules.graph.matching import NotImported
from smartmem_rules.graph.weights import Values
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.extents import shape_text

MOST_STEPS = 4096
"""Unrolled loops with more steps make plans that nobody can wait for."""

Process = Callable[[Sequence[onnx.NodeProto], Collection[str]], None]
"""Imports nodes in order, given the tensors that are read."""


def has_body(node: onnx.NodeProto) -> bool:
    """Whether the node holds a subgraph."""
    kinds = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return any(attribute.type in kinds for attribute in node.attribute)


@dataclass(frozen=True)
class Bodies:
    """Imports bodies into the graph around them.

    Attributes:
        values: the known tensors; constants of the bodies are added.
        missing: tensors that could not be imported.
        process: imports nodes.
        new: a name that no tensor of the model or of the import has, as near as can be to a given one.
    """

    values: Values
    missing: Collection[str]
    process: Process
    new: Callable[[str], str]

    def body(self, graph: onnx.GraphProto, prefix: str, given: Mapping[str, str]) -> list[str]:
        """Import a body under new names; the names of its outputs.

        Raises:
            Unsupported: the body has an input that the node does not give.
        """
        names = dict(given)
        for tensor in graph.initializer:
            names[tensor.name] = self.new(prefix + tensor.name)
            self.values.add(names[tensor.name], tensor)
        open_inputs = [value.name for value in graph.input if value.name not in names]
        if open_inputs:
            raise Unsupported(f"nothing gives {', '.join(map(repr, open_inputs))}, inputs of its body {graph.name!r}")
        inner = dict.fromkeys(output for node in graph.node for output in node.output if output)
        names.update({output: self.new(prefix + output) for output in inner})
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

    def name_outputs(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Give the outputs of a node the values of tensors."""
        if len(targets) > len(sources):
            raise Unsupported(f"it has {len(targets)} outputs, and its body gives {len(sources)}")
        for source, target in zip(sources, targets, strict=False):
            if target:
                self.one("Identity", [source], target)

    def stack(self, name: str, collected: Sequence[Sequence[str]], outputs: Sequence[str], axes: Sequence[int]) -> None:
        """Join what the steps gave along a new axis."""
        for parts, output, axis in zip(collected, outputs, axes, strict=True):
            if not output:
                continue
            if not parts:
                raise Unsupported("a loop of no steps gives nothing to stack")
            shapes = list(dict.fromkeys(self.shape(part) for part in parts if part not in self.missing))
            if len(shapes) > 1:
                raise Unsupported(
                    f"its steps give {output!r} pieces of different shapes, {shape_text(shapes[0])} and "
                    f"{shape_text(shapes[1])}, which cannot be stacked"
                )
            at = self.constant([axis], f"{output}/axis")
            widened = [
                self.computed("Unsqueeze", [part, at], f"{name}/{output}/{number}") for number, part in enumerate(parts)
            ]
            self.one("Concat", widened, output, axis=axis)

    def constant(self, value: object, name: str) -> str:
        """A known tensor of integers or truth values, under a new name like the given one."""
        made = self.new(name)
        array = np.asarray(value)
        self.values[made] = array if array.dtype == bool else array.astype(np.int64)
        return made

    def computed(self, operator: str, inputs: list[str], name: str, axis: int | None = None) -> str:
        """What one operator gives, under a new name like the given one."""
        made = self.new(name)
        self.one(operator, inputs, made, axis)
        return made

    def one(self, operator: str, inputs: list[str], output: str, axis: int | None = None) -> None:
        """Import one operator with one output."""
        node = helper.make_node(operator, inputs, [output], name=f"{output}/{operator}")
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self.process([node], {output})

    def only(self, tensor: str) -> int:
        """The single element of a known tensor."""
        value = self.values[tensor]
        if value.size != 1:
            raise Unsupported(f"{tensor!r} says where to go on, and has {value.size} elements")
        return int(value.reshape(-1)[0])

    def length(self, tensors: Sequence[str], axes: Sequence[int]) -> int:
        """The extent of an axis of each tensor, which is that of all."""
        shapes = [self.shape(tensor) for tensor in tensors]
        for shape, axis in zip(shapes, axes, strict=True):
            if not -len(shape) <= axis < len(shape):
                raise Unsupported(f"it scans axis {axis} of a tensor of {len(shape)} axes")
        first, *others = sorted({shape[axis] for shape, axis in zip(shapes, axes, strict=True)})
        if others:
            raise Unsupported(f"the axes that it scans have {', '.join(map(str, [first, *others]))} elements")
        return first

    def is_tensor(self, name: str) -> bool:
        """Whether it is a tensor, as far as that is known, and no sequence or optional value."""
        return name in self.missing or name in self.values.types

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The shape of a tensor; raises NotImported for one that could not be imported."""
        if tensor in self.missing:
            raise NotImported("a tensor of its body cannot be imported")
        if tensor not in self.values.types:
            raise Unsupported("it chooses among sequences or optional values while the model runs")
        return self.values.types[tensor].shape

    def scalar(self, condition: str, name: str) -> str:
        """A condition without axes: one of shape [1] gives what is chosen no further axis."""
        if condition in self.missing or self.shape(condition) == ():
            return condition
        return self.computed("Reshape", [condition, self.constant([], f"{name}/shape")], name)


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
