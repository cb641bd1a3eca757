"""Models of a few nodes for tests of the judge, and its verdict about one output."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.outputs import Reference


def model_of(nodes: list[onnx.NodeProto], shape: tuple[int, ...], kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def is_wrong(model: onnx.ModelProto, x: Array, got: Array) -> bool:
    return bool(differences({"y": got}, Reference(model, {"x": x}).expected()))
