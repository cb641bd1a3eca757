"""The types of a model's tensors, by ONNX's shape inference on a copy without large data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import onnx
from onnx import shape_inference

from smartmem_rules.graph.weights import dtype_name
from smartmem_rules.tensor.expr import ALL_DTYPES

Types: TypeAlias = Mapping[str, onnx.TypeProto]

_DATA_KEPT = 1 << 12
"""Elements of the largest tensor whose values shape inference may see."""


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


def types_of(skeleton: onnx.ModelProto) -> Types:
    """The type of each tensor of the main graph of which one is known."""
    try:
        inferred = shape_inference.infer_shapes(skeleton, check_type=False, strict_mode=False, data_prop=True)
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
