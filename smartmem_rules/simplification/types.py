"""The types of a model's tensors and the precision of its outputs, by ONNX's shape inference without large data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import onnx
from onnx import helper, shape_inference

from smartmem_rules.graph.weights import dtype_name, is_external
from smartmem_rules.tensor.expr import ALL_DTYPES

Types: TypeAlias = Mapping[str, onnx.TypeProto]

_DATA_KEPT = 1 << 12
"""Elements of the largest tensor whose values shape inference may see."""
MOST_ELEMENTS = 1 << 24
"""Elements that a model may make of its own constants before the import has counted them."""
_PRECISIONS: Mapping[int, str] = {
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
}
"""Types of floats, the least precise one first."""
_STASH = "stash_type"
"""The attribute of operators that compute statistics in a type of their own, whatever that of their operands is."""


def skeleton_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the data of large initializers, whose shapes and types stay."""
    made = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = made.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= _DATA_KEPT and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        else:
            stripped = graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            stripped.data_location = onnx.TensorProto.EXTERNAL
            stripped.external_data.add(key="location", value="elsewhere")
    return made


def elements_of_constants(model: onnx.ModelProto) -> int:
    """How many elements the nodes make that read nothing but constants, as far as ONNX's inference says so."""
    known = {tensor.name for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if all(name in known for name in node.input if name):
            known.update(filter(None, node.output))
            nodes.append(node)
    if all(node.op_type == "Constant" for node in nodes):
        return 0
    part = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    part.graph.name = "constants"
    part.graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    for tensor in model.graph.initializer:
        if tensor.name in read and math.prod(tensor.dims) <= _DATA_KEPT and not is_external(tensor):
            part.graph.initializer.append(tensor)
        elif tensor.name in read:
            part.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    try:
        inferred = shape_inference.infer_shapes(part)
    except Exception:  # ONNX's own errors: the import says what is wrong
        return 0
    types = {value.name: value.type.tensor_type for value in inferred.graph.value_info}
    made = [name for node in nodes for name in node.output if name]
    return sum(_elements(types[name]) for name in made if name in types)


def _elements(type_: onnx.TypeProto.Tensor) -> int:
    known = type_.HasField("shape") and all(dim.HasField("dim_value") for dim in type_.shape.dim)
    return math.prod(dim.dim_value for dim in type_.shape.dim) if known else 0


def types_of(skeleton: onnx.ModelProto) -> Types:
    """The type of each tensor of the main graph of which one is known."""
    # ONNX follows the elements of constants without a bound
    follows = elements_of_constants(skeleton) <= MOST_ELEMENTS
    try:
        inferred = shape_inference.infer_shapes(skeleton, check_type=False, strict_mode=False, data_prop=follows)
    except Exception:  # what the model itself declares is known all the same
        inferred = skeleton
    graph = inferred.graph
    types = {value.name: value.type for value in (*graph.value_info, *graph.output, *graph.input)}
    for tensor in graph.initializer:
        if tensor.name not in types:
            shape = onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(dim_value=n) for n in tensor.dims])
            made = onnx.TypeProto.Tensor(elem_type=tensor.data_type, shape=shape)
            types[tensor.name] = onnx.TypeProto(tensor_type=made)
    return types


def is_usable(type_: onnx.TypeProto | None) -> bool:
    """Whether rules can see a tensor: its elements are numbers, and all of its extents are known."""
    if type_ is None or not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return False
    tensor = type_.tensor_type
    if tensor.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return False
    return dtype_name(tensor.elem_type) in ALL_DTYPES and all(dim.HasField("dim_value") for dim in tensor.shape.dim)


def is_seen(type_: onnx.TypeProto | None) -> bool:
    """Whether rules can see a tensor whose open extents have names: its elements are numbers, its rank is known."""
    if type_ is None or not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return False
    tensor = type_.tensor_type
    if tensor.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return False
    named = all(dim.HasField("dim_value") or dim.dim_param for dim in tensor.shape.dim)
    return named and dtype_name(tensor.elem_type) in ALL_DTYPES


def open_names(values: Iterable[onnx.ValueInfoProto]) -> tuple[str, ...]:
    """The names of the open extents of tensors."""
    dims = (dim for value in values for dim in value.type.tensor_type.shape.dim)
    return tuple(dict.fromkeys(dim.dim_param for dim in dims if not dim.HasField("dim_value")))


def with_names(types: Types, model: onnx.ModelProto) -> Types:
    """The types with a name for each open extent: equal names mean equal extents.

    An input's name means what it says, since its scope is the whole graph (ONNX IR, "Static tensor shapes"). For other
    tensors only what shape inference follows from the inputs counts, not what the model declares: exporters write one
    name for extents that differ. Whatever is left has a name of its own.
    """
    inputs = {value.name for value in model.graph.input}
    given = {name for name in open_names(model.graph.input) if name}
    if not any(_is_open(type_) for type_ in types.values()):
        return types
    undeclared = skeleton_of(model)
    del undeclared.graph.value_info[:]
    for value in undeclared.graph.output:
        value.type.Clear()
    sure = types_of(undeclared)
    found = {}
    for name, type_ in types.items():
        found[name] = type_
        if not _is_open(type_):
            continue
        named = found[name] = onnx.TypeProto()
        named.CopyFrom(type_)
        known = type_ if name in inputs else sure.get(name, onnx.TypeProto())
        dims, sources = named.tensor_type.shape.dim, known.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            if dim.HasField("dim_value"):
                continue
            source = sources[axis].dim_param if len(sources) == len(dims) else ""
            dim.dim_param = source if source in given else _own_name(f"{name}.{axis}", given)
    return found


def without_names(types: Types) -> Types:
    """The types without names of open extents: rules see no tensor that has some."""
    found = {}
    for name, type_ in types.items():
        found[name] = type_
        if _is_open(type_):
            found[name] = onnx.TypeProto()
            found[name].CopyFrom(type_)
            for dim in found[name].tensor_type.shape.dim:
                dim.ClearField("dim_param")
    return found


def _is_open(type_: onnx.TypeProto) -> bool:
    if not type_.HasField("tensor_type"):
        return False
    return not all(dim.HasField("dim_value") for dim in type_.tensor_type.shape.dim)


def _own_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


def precisions_of(model: onnx.ModelProto) -> Mapping[str, str]:
    """The least precise type of floats that anything is computed in on the way to each tensor of the main graph.

    A `float32` that is cast from a `float16` has the digits of the latter. Tensors that no floats lead to are left out.
    """
    skeleton = skeleton_of(model)
    types = types_of(skeleton)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    found = {name: dtype for name, type_ in types.items() if (dtype := _float_of(type_)) is not None}
    for node in skeleton.graph.node:
        read = {found[name] for name in _read_by(node) if name in found}
        read |= {dtype for inner in _nodes_inside(node) if (dtype := _stash_of(inner, opsets)) is not None}
        for name in node.output:
            least = _least({*read, found.get(name)})
            if least is not None:
                found[name] = least
    return found


def _least(dtypes: set[str | None]) -> str | None:
    return next((dtype for dtype in _PRECISIONS.values() if dtype in dtypes), None)


def _float_of(type_: onnx.TypeProto) -> str | None:
    return _PRECISIONS.get(type_.tensor_type.elem_type) if type_.HasField("tensor_type") else None


def _nodes_inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A node and those of its bodies."""
    yield node
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _nodes_inside(inner)


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    for inner in _nodes_inside(node):
        yield from inner.input


def _stash_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str | None:
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None
    if _STASH not in schema.attributes:
        return None
    codes = [attribute.i for attribute in node.attribute if attribute.name == _STASH]
    return _PRECISIONS.get(codes[0] if codes else onnx.TensorProto.FLOAT)
