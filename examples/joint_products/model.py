"""A gated unit: three products of one tensor, with weights of different widths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

RULES = Path(__file__).parent / "joint_products.smr"


def build(units: int = 1, rows: int = 64, width: int = 48) -> onnx.ModelProto:
    """x becomes tanh(x a) * sigmoid(x b) + x c in each unit."""
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for unit in range(units):
        for name in "abc":
            values = random.standard_normal((width, width)).astype(np.float32) / np.sqrt(width)
            weights.append(numpy_helper.from_array(values.astype(np.float32), f"{name}{unit}"))
            nodes.append(helper.make_node("MatMul", [last, f"{name}{unit}"], [f"x{name}{unit}"], f"x{name}{unit}"))
        nodes.append(helper.make_node("Tanh", [f"xa{unit}"], [f"new{unit}"], f"new{unit}"))
        nodes.append(helper.make_node("Sigmoid", [f"xb{unit}"], [f"gate{unit}"], f"gate{unit}"))
        nodes.append(helper.make_node("Mul", [f"new{unit}", f"gate{unit}"], [f"gated{unit}"], f"gated{unit}"))
        last = "y" if unit == units - 1 else f"y{unit}"
        nodes.append(helper.make_node("Add", [f"gated{unit}", f"xc{unit}"], [last], f"sum{unit}"))
    shape = (rows, width)
    graph = helper.make_graph(
        nodes,
        "joint_products",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
