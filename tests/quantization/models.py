"""Models with products of weights, for `quantize`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.plan.models import Array, normal

COLUMNS = 72
DEPTHS = (96, COLUMNS)


def perceptron(weights: dict[str, Array] | None = None, opset: int = 17) -> onnx.ModelProto:
    """y = gemm(relu(x u), v) * 2 + c with v transposed, and a small product behind it that stays as it is."""
    held = {
        "u": normal(96, COLUMNS),
        "v": normal(64, COLUMNS, seed=1),
        "c": normal(64, seed=2),
        "s": normal(64, 8, seed=3),
        **(weights or {}),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["h"], "relu"),
        helper.make_node("Gemm", ["h", "v", "c"], ["b"], "second", transB=1, alpha=2.0),
        helper.make_node("MatMul", ["b", "s"], ["y"], "small"),
    ]
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 96])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 8])],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def saved(path: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, str(path))
    return path


def ran(model: onnx.ModelProto, x: Array) -> Array:
    """The output by ONNX Runtime, without its optimizer."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return np.asarray(session.run(None, {"x": x})[0])
