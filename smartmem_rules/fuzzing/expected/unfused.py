"""Nodes that ONNX Runtime fuses, as the nodes that they stand for: those have a reference in double precision."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import helper

from smartmem_rules.fuzzing.expected.faults import attribute

_MICROSOFT = "com.microsoft"
_PLAIN = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Clip": ("min", "max")}
"""What an activation's parameters are called, in their order."""
_BEGINNING = "activation"


def unfused(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each FusedConv and FusedGemm (com.microsoft) as a product, an addition and an activation."""
    nodes = model.graph.node
    if not any(node.domain == _MICROSOFT and node.op_type in _PLAIN for node in nodes):
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.node[:]
    for node in nodes:
        fused = node.domain == _MICROSOFT and node.op_type in _PLAIN
        found.graph.node.extend(_parts(node) if fused else [node])
    return found


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
