"""A residual connection, a normalization of a custom domain with a further scale, and a product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "range_normalization.smr"
DOMAIN = "example.norms"


def build(rows: int = 20, width: int = 48, seed: int = 0) -> onnx.ModelProto:
    """y = (rangenorm(x + r, s) * c) w."""
    random = np.random.default_rng(seed)
    weights = {
        "s": random.uniform(0.5, 1.5, width).astype(np.float32),
        "c": random.uniform(0.5, 1.5, width).astype(np.float32),
        "w": (random.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Add", ["x", "r"], ["sum"], "sum"),
        helper.make_node("RangeNormalization", ["sum", "s"], ["normal"], "normal", domain=DOMAIN),
        helper.make_node("Mul", ["normal", "c"], ["scaled"], "scaled"),
        helper.make_node("MatMul", ["scaled", "w"], ["y"], "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "range_normalization",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (rows, width)) for name in ("x", "r")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, width))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)
