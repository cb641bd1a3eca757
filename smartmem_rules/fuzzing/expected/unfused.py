"""Nodes that ONNX Runtime fuses, as the nodes that they stand for: those have a reference in double precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.conditions import attribute
from smartmem_rules.fuzzing.expected.node_runner import constant_value

_MICROSOFT = "com.microsoft"
_PLAIN = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}
"""What an activation's parameters are called, in their order."""
_BEGINNING = "activation"
_PIXELS = frozenset({onnx.TensorProto.UINT8, onnx.TensorProto.INT8, onnx.TensorProto.INT32})


def unfused(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without FusedConv, FusedGemm and MatMulNBits (com.microsoft) of constant weights in single precision.

    A product, an addition and an activation take their place. Integers are interpolated as floats and then cut, so that
    what lies beside a whole number is seen to do so.
    """
    found = onnx.ModelProto()
    found.CopyFrom(model)
    constants = {t.name: np.asarray(numpy_helper.to_array(t)) for t in model.graph.initializer}
    constants |= {n.output[0]: constant_value(n) for n in model.graph.node if n.op_type == "Constant"}
    del found.graph.node[:]
    kinds = _element_types(model)
    for node in model.graph.node:
        weights = _weights(node, constants)
        if weights is not None:
            found.graph.initializer.append(numpy_helper.from_array(weights, f"{node.output[0]}/weights"))
            found.graph.node.extend(_product(node))
        elif node.domain == _MICROSOFT and node.op_type in _PLAIN:
            found.graph.node.extend(_parts(node))
        elif node.op_type == "Resize" and kinds.get(node.input[0]) in _PIXELS and _interpolates(node):
            found.graph.node.extend(_floats_between(node, kinds[node.input[0]]))
        else:
            found.graph.node.append(node)
    return found


def _element_types(model: onnx.ModelProto) -> dict[str, int]:
    """The element types of the tensors whose types are known without a run."""
    if all(node.op_type != "Resize" for node in model.graph.node):
        return {}
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    return {value.name: value.type.tensor_type.elem_type for value in values} | {
        tensor.name: tensor.data_type for tensor in graph.initializer
    }


def _interpolates(node: onnx.NodeProto) -> bool:
    return attribute(node, "mode", b"nearest") != b"nearest"


def _floats_between(node: onnx.NodeProto, kind: int) -> Iterable[onnx.NodeProto]:
    floats, between = f"{node.output[0]}/floats", f"{node.output[0]}/between"
    yield helper.make_node("Cast", [node.input[0]], [floats], to=onnx.TensorProto.FLOAT)
    resized = onnx.NodeProto()
    resized.CopyFrom(node)
    resized.input[0], resized.output[0] = floats, between
    yield resized
    yield helper.make_node("Cast", [between], [node.output[0]], to=kind)


def _weights(node: onnx.NodeProto, constants: Mapping[str, Array]) -> Array | None:
    """The unpacked weights, float32[K, N]; None where the node has none that are known."""
    if node.domain != _MICROSOFT or node.op_type != "MatMulNBits":
        return None
    names = list(node.input[1:4])
    if not all(name in constants for name in names if name) or (len(node.input) > 4 and node.input[4]):
        return None
    packed, scales, *zeros = (constants[name] for name in names if name)
    if scales.dtype != np.float32:
        return None
    sizes = [attribute(node, name, default) for name, default in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 0))]
    depth, columns, bits, block = (size for size in sizes if isinstance(size, int))
    count = -(-depth // block)
    integers = _unpacked(packed.reshape(columns, -1), bits)[:, :depth].astype(np.float32)
    zero = np.full((columns, count), 2.0 ** (bits - 1), np.float32)
    if zeros and zeros[0].dtype == np.uint8:
        zero = _unpacked(zeros[0].reshape(columns, -1), bits)[:, :count].astype(np.float32)
    elif zeros:
        zero = zeros[0].reshape(columns, count)
    of_block = np.arange(depth) // block
    scale = scales.reshape(columns, count)
    return np.ascontiguousarray(((integers - zero[:, of_block]) * scale[:, of_block]).T)


def _unpacked(packed: Array, bits: int) -> Array:
    """The integers of each row, the first in the lowest bits of a byte."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[..., None] >> shifts) & np.uint8(2**bits - 1)).reshape(packed.shape[0], -1)


def _product(node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
    result = node.output[0]
    bias = node.input[5] if len(node.input) > 5 else ""
    product = f"{result}/product" if bias else result
    yield helper.make_node("MatMul", [node.input[0], f"{result}/weights"], [product])
    if bias:
        yield helper.make_node("Add", [product, bias], [result])


def _parts(node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
    inputs, result = list(node.input), node.output[0]
    operands, addend = inputs[:3], inputs[3] if len(inputs) > 3 else ""
    sums = f"{result}/sums"
    plain = helper.make_node(_PLAIN[node.op_type], operands, [sums])
    plain.attribute.extend(a for a in node.attribute if not a.name.startswith(_BEGINNING))
    yield plain
    if addend:
        yield helper.make_node("Add", [sums, addend], [f"{result}/added"])
        sums = f"{result}/added"
    yield from _activation(node, sums, result)


def _activation(node: onnx.NodeProto, given: str, result: str) -> Iterable[onnx.NodeProto]:
    name = attribute(node, _BEGINNING, b"")
    assert isinstance(name, bytes)
    activation = name.decode() or "Identity"
    values = attribute(node, "activation_params", None)
    if not isinstance(values, list):
        values = [v for v in (attribute(node, f"activation_{p}") for p in ("alpha", "beta", "gamma")) if v is not None]
    parameters = dict(zip(_PARAMETERS.get(activation, ()), values, strict=False))
    if activation != "Clip":
        yield helper.make_node(activation, [given], [result], **parameters)
        return
    bounds = [f"{result}/{parameter}" for parameter in parameters]
    for bound, value in zip(bounds, parameters.values(), strict=True):
        yield helper.make_node("Constant", [], [bound], value_float=value)
    yield helper.make_node("Clip", [given, *bounds], [result])
