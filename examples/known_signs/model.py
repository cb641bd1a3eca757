"""Rectifiers of what is never below zero: of a softmax, of squares that are summed and pooled, of a constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

RULES = Path(__file__).parent / "known_signs.smr"


def build(offset: float = 1.0) -> onnx.ModelProto:
    """relu(softmax(x) + |pool(x^2 + exp(x)) + offset|), and relu(x - 1), which has to stay."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["weights"], "weights", axis=-1),
        helper.make_node("Mul", ["x", "x"], ["square"], "square"),
        helper.make_node("Exp", ["x"], ["power"], "power"),
        helper.make_node("Add", ["square", "power"], ["energy"], "energy"),
        helper.make_node("GlobalAveragePool", ["energy"], ["pooled"], "pooled"),
        helper.make_node("Add", ["pooled", "offset"], ["moved"], "moved"),
        helper.make_node("Abs", ["moved"], ["size"], "size"),
        helper.make_node("Add", ["weights", "size"], ["total"], "total"),
        helper.make_node("Relu", ["total"], ["y"], "rectified"),
        helper.make_node("Sub", ["x", "one"], ["less"], "less"),
        helper.make_node("Relu", ["less"], ["z"], "needed"),
    ]
    shape = (2, 3, 8, 8)
    graph = helper.make_graph(
        nodes,
        "known_signs",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("y", "z")],
        [
            numpy_helper.from_array(np.full((1, 3, 1, 1), offset, np.float32), "offset"),
            numpy_helper.from_array(np.array(1.0, np.float32), "one"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
