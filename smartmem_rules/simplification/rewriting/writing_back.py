"""The simplified model as a ModelProto: all that is no node or constant stays as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import helper, numpy_helper

from smartmem_rules.simplification.in_place import Aside
from smartmem_rules.simplification.rewriting.assembling import Assembled
from smartmem_rules.simplification.rewriting.region import Region

_OWN_FIELDS = ("node", "initializer", "sparse_initializer", "input", "value_info", "quantization_annotation")
_INPUTS_NAME_CONSTANTS = 4
"""Before this version of the format every initializer stands among the inputs as well."""


def written_back(region: Region, made: Assembled, aside: Aside | None) -> onnx.ModelProto:
    """The model of the assembled nodes, with the file's names, metadata, functions and symbolic dimensions.

    Large tensors that lie in files stay there.

    Args:
        aside: where large new ones are written; None if they are held.
    """
    model = region.model
    result = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _copy_field(result, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name not in _OWN_FIELDS:
            _copy_field(result.graph, field.name, value)
    graph = result.graph
    graph.node.extend(made.nodes)
    graph.initializer.extend(_initializers(region, made, aside))
    read = {name for node in made.nodes for name in _read_by(node)} | {value.name for value in model.graph.output}
    graph.sparse_initializer.extend(t for t in model.graph.sparse_initializer if t.values.name in read)
    _declare_inputs(model, graph)
    there = {tensor.name for tensor in graph.initializer}.union(*(node.output for node in graph.node))
    graph.value_info.extend(value for value in model.graph.value_info if value.name in there)
    there |= {value.name for value in graph.input}
    annotations = (one for one in model.graph.quantization_annotation if one.tensor_name in there)
    graph.quantization_annotation.extend(annotations)
    _import_domains(result, made)
    return result


def _copy_field(target: object, name: str, value: object) -> None:
    field = getattr(target, name)
    if hasattr(field, "extend"):
        field.extend(value)
    elif hasattr(field, "CopyFrom"):
        field.CopyFrom(value)
    else:
        setattr(target, name, value)


def _initializers(region: Region, made: Assembled, aside: Aside | None) -> Iterator[onnx.TensorProto]:
    """Those that are still read, in their order, then new ones; those that a caller may replace stay in any case."""
    wanted = set(made.stored)
    own = {tensor.name for tensor in region.model.graph.initializer}
    for tensor in region.model.graph.initializer:
        if tensor.name in wanted or tensor.name not in region.constants:
            yield tensor
    for name in made.stored:
        if name not in own:  # of a Constant node
            tensor = onnx.TensorProto()
            tensor.CopyFrom(region.constants[name])
            tensor.name = name
            yield tensor
    if aside is not None:
        yield from aside.tensors(made.computed)
        return
    for name, array in made.computed.items():
        yield numpy_helper.from_array(array, name)


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            for inner in body.node:
                yield from _read_by(inner)
            yield from (value.name for value in body.output)


def _declare_inputs(model: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    held = {tensor.name for tensor in model.graph.initializer}
    left = {tensor.name for tensor in graph.initializer}
    graph.input.extend(value for value in model.graph.input if value.name not in held or value.name in left)
    if model.ir_version < _INPUTS_NAME_CONSTANTS:
        declared = {value.name for value in graph.input}
        graph.input.extend(_declarations(tensor for tensor in graph.initializer if tensor.name not in declared))


def _declarations(tensors: Iterable[onnx.TensorProto]) -> Iterator[onnx.ValueInfoProto]:
    for tensor in tensors:
        yield helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))


def _import_domains(model: onnx.ModelProto, made: Assembled) -> None:
    known = {entry.domain for entry in model.opset_import}
    for domain in sorted(made.domains - known):
        model.opset_import.append(helper.make_opsetid(domain, 1))
