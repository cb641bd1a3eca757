"""Floats of eight bits whose scales and zero points are looked at when a model is imported."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smartmem_rules import optimize

KINDS = (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ)


def model_of(nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "narrow", given, made, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


X = np.array([[1, -2, 0.5, 4], [0.25, 8, -1, 3]], np.float32)
SCALE = helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_with_a_zero_point(kind: int) -> None:
    weights = np.array([[1, 2], [3, -4], [5, 6], [7, -8]], np.float32)
    constants = [
        helper.make_tensor("q", kind, weights.shape, weights.reshape(-1)),
        helper.make_tensor("zero", kind, [], [0.0]),
        SCALE,
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    assert np.allclose(optimize(model_of(nodes, constants)).run({"x": X})["y"], X @ weights / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_quantized_and_back(kind: int) -> None:
    constants = [helper.make_tensor("zero", kind, [], [0.0]), SCALE]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    assert np.array_equal(optimize(model_of(nodes, constants)).run({"x": X})["y"], X)
