"""Puts the selected graph and the barriers together as the nodes and initializers of a model.

Nodes of the file that are still there keep their form: their name, attributes, metadata, documentation. Only what rules
made is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.loading import named_in_bodies, node_inputs, sorted_nodes
from smartmem_rules.graph.model import EXTENTS, VIEW, Graph, Node
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import attribute_key
from smartmem_rules.simplification.rewriting.extents import OpenWriter, extent_nodes
from smartmem_rules.simplification.rewriting.region import Region
from smartmem_rules.simplification.rewriting.selecting import Selected
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.writing.expressing import STANDARD, write_node
from smartmem_rules.writing.views import NotExpressible, Writer, shape_in_numbers

CONSTANTS_ARE_OUTPUTS = 4
"""From this version of the format on an initializer may be an output of the model."""
Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """The nodes of the simplified model in topological order, and its constants.

    Attributes:
        stored: initializers that the model had, by name.
        computed: new ones.
        places: of each node that is one of the file, its place there, by its first output.
        domains: of operators outside of the standard that were made.
    """

    nodes: Sequence[onnx.NodeProto]
    stored: Sequence[str]
    computed: Mapping[str, Array]
    places: Mapping[str, int]
    domains: frozenset[str]


@dataclass(kw_only=True)
class _Assembly:
    region: Region
    selected: Selected
    opset: int
    writer: OpenWriter
    originals: dict[Key, list[Node]] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)

    def key(self, node: Node) -> Key:
        """Equal nodes have equal keys: operator, classes of operands, attributes."""
        classes = self.selected.saturation.tensor_class
        operands = [None if o is None else classes.get(o, o) for o in node.operands]
        while operands and operands[-1] is None:
            operands.pop()
        attributes = attribute_key({k: v for k, v in node.attributes.items() if v is not None})
        return (node.operator, tuple(operands), attributes, len(node.outputs))

    def original(self, node: Node) -> Node | None:
        """The node of the model that a selected one is, best the one with the same results."""
        found = self.originals.get(self.key(node), [])
        return max(found, key=lambda one: one.outputs == node.outputs, default=None)

    def write(self, node: Node) -> None:
        """Write a node of the selected graph.

        Raises:
            NotExpressible: ONNX has no form for it.
        """
        if node.operator == EXTENTS:
            self._write_extents(node)
            return
        start = len(self.writer.nodes)
        try:
            self._write(node)
        except SymbolicExtentError as error:
            raise NotExpressible(f"{node.operator}: {error}") from error
        if node.operator != VIEW:
            self._reshape_by_numbers(self.writer.nodes[start], node)

    def _write_extents(self, node: Node) -> None:
        """A tensor of open extents that nodes read, or that is an output."""
        (output,) = node.outputs
        number = self.selected.saturation.tensor_class[output]
        known = self.region.graph.extents
        name = next(one for one in self.selected.saturation.classes[number].tensors if one in known)
        self.writer.extents(known[name].array, storage_dtype(known[name].dtype), output)

    def _reshape_by_numbers(self, made: onnx.NodeProto, node: Node) -> None:
        """Give a Reshape to open extents a list of numbers where one says the same."""
        if made.op_type != "Reshape" or made.domain not in STANDARD or made.input[1] not in self.writer.wanted:
            return
        source = self.selected.graph.types[str(node.operands[0])].shape
        numbers = shape_in_numbers(source, self.writer.wanted[made.input[1]].array.tolist())
        zeros_count = any(one.name == "allowzero" and one.i for one in made.attribute)
        if numbers is not None and not (zeros_count and 0 in numbers):
            made.input[1] = self.writer.constant(numbers)

    def _write(self, node: Node) -> None:
        before = None if node.operator == VIEW else self.original(node)
        copy = None if before is None else self._copied(before, node)
        if copy is not None:
            self.writer.nodes.append(copy)
            return
        start = len(self.writer.nodes)
        write_node(node, self.selected.graph, self.selected.saturation.instances, self.opset, self.writer)
        place = None if before is None else self.region.place_of(before.name)
        if place is not None:  # the same operator, with operands that are computed no longer
            template = self.region.model.graph.node[place]
            made = self.writer.nodes[start]
            made.name, made.doc_string = template.name, template.doc_string
            made.metadata_props.extend(template.metadata_props)
            self.places[made.output[0]] = place

    def _copied(self, before: Node, node: Node) -> onnx.NodeProto | None:
        """The file's node with new operands; None where it reads a value that is no constant any longer."""
        place = self.region.place_of(before.name)
        if place is None:
            return None
        copy = onnx.NodeProto()
        copy.CopyFrom(self.region.model.graph.node[place])
        names = {old: new for old, new in zip(before.operands, node.operands, strict=False) if old and new}
        attributes_only = [name for name in copy.input if name and name not in names]
        known, extents = self.region.graph.known, self.region.graph.extents
        for name in attributes_only:
            if name in extents:
                names[name] = self.writer.extents(extents[name].array, storage_dtype(extents[name].dtype))
                continue
            if name not in self.region.constants and name not in known:
                return None
            if name not in self.region.constants:
                self.writer.constants[name] = known[name]
        copy.input[:] = [names.get(name, name) for name in copy.input]
        results = {
            old: new
            for old, new in zip(before.outputs, node.outputs, strict=True)
            if new in self.selected.saturation.tensor_class
        }
        # what nothing reads keeps its name, unless another node makes an equal tensor of that name
        taken = self.selected.graph.types
        unread = {name: f"{self.writer.prefix}{name}" if name in taken else name for name in copy.output if name}
        copy.output[:] = [results.get(name, unread.get(name, "")) for name in copy.output]
        self.places[next(filter(None, copy.output))] = place
        return copy


def assembled(region: Region, selected: Selected, opset: int) -> Assembled:
    """The nodes of the simplified model.

    Raises:
        GraphError: a rule made a barrier depend on its own results.
        NotExpressible: ONNX has no form for a node.
    """
    model, graph = region.model, selected.graph
    assembly = _Assembly(region=region, selected=selected, opset=opset, writer=OpenWriter(_prefix(model, graph)))
    for node in region.graph.nodes:
        assembly.originals.setdefault(assembly.key(node), []).append(node)
    for node in graph.nodes:
        assembly.write(node)
    writer = assembly.writer
    outputs = [value.name for value in model.graph.output]
    made = {name for node in writer.nodes for name in node.output}
    barriers = [_copy(model.graph.node[place]) for place in sorted(region.barriers)]
    assembly.places.update(
        (next(filter(None, model.graph.node[place].output), f"#{place}"), place) for place in region.barriers
    )
    own = [*writer.nodes, *_extent_nodes(assembly)]
    nodes = _without_identities([*own, *barriers], outputs, len(own), region)
    constants = {**graph.constants, **writer.constants}
    if model.ir_version < CONSTANTS_ARE_OUTPUTS:
        nodes += _copies_of_constants(outputs, constants, made, writer)
    given = {value.name for value in model.graph.input} | region.constants.keys() | constants.keys()
    given |= {tensor.name for tensor in model.graph.initializer}
    sparse = {tensor.values.name for tensor in model.graph.sparse_initializer}
    given |= sparse
    by_nodes = {name for node in nodes for name in node.output}
    given -= by_nodes
    nodes = sorted_nodes(nodes, given, outputs)
    read = dict.fromkeys(name for node in nodes for name in node_inputs(node))
    read.update(dict.fromkeys(outputs))
    stored = [name for name in read if name in region.constants and name not in by_nodes]
    held = region.constants.keys() | sparse
    computed = {name: constants[name] for name in read if name in constants and name not in held}
    domains = frozenset(node.domain for node in nodes if node.domain not in STANDARD)
    return Assembled(nodes=nodes, stored=stored, computed=computed, places=assembly.places, domains=domains)


def _extent_nodes(assembly: _Assembly) -> list[onnx.NodeProto]:
    """The nodes of the tensors of open extents that are read, or are outputs."""
    writer, graph = assembly.writer, assembly.selected.graph
    region = assembly.region.graph
    read = {name for node in writer.nodes for name in node.input}.union(region.outputs)
    writer.wanted = {name: one for name, one in writer.wanted.items() if name in read}
    given = {name: region.types[name].shape for name in region.inputs}
    return extent_nodes(writer, assembly.opset, given, {name: type_.shape for name, type_ in graph.types.items()})


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _without_identities(
    nodes: list[onnx.NodeProto], outputs: Sequence[str], written: int, region: Region
) -> list[onnx.NodeProto]:
    """Readers of a copy that was written for a name's sake read the tensor itself, if no body names the copy."""
    fixed = set(outputs)
    for place in region.barriers:
        fixed.update(named_in_bodies(region.model.graph.node[place]))
    own = {id(node) for node in nodes[:written]}
    sources: dict[str, str] = {}
    kept = []
    for node in nodes:
        plain = node.op_type == "Identity" and node.domain in STANDARD and id(node) in own
        if plain and node.output[0] not in fixed and not node.name:
            sources[node.output[0]] = sources.get(node.input[0], node.input[0])
        else:
            kept.append(node)
    for node in kept:
        node.input[:] = [sources.get(name, name) for name in node.input]
    return kept


def _copies_of_constants(
    outputs: Iterable[str], constants: dict[str, Array], made: set[str], writer: Writer
) -> list[onnx.NodeProto]:
    """An output whose value is known is a copy of a constant."""
    nodes = []
    for output in dict.fromkeys(outputs):
        if output in made or output not in constants:
            continue
        name = writer.constant(constants.pop(output), None)
        constants[name] = np.asarray(writer.constants[name])
        nodes.append(helper.make_node("Identity", [name], [output]))
    return nodes


def _prefix(model: onnx.ModelProto, graph: Graph) -> str:
    """What names of new tensors begin with: no name of the model does."""
    taken = {*graph.types, *_names(model.graph)}
    prefix = "s."
    while any(name.startswith(prefix) for name in taken):
        prefix = f"s{prefix}"
    return prefix


def _names(graph: onnx.GraphProto) -> Iterable[str]:
    for value in (*graph.input, *graph.output, *graph.initializer):
        yield value.name
    for node in graph.node:
        yield from (*node.input, *node.output)
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _names(body)
