"""Attention over a sequence with two learned relative-position biases, operators of a custom domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "relative_bias.smr"
DOMAIN = "example.attention"


def build(heads: int = 2, length: int = 12, width: int = 8, seed: int = 0) -> onnx.ModelProto:
    """softmax(q k^T + near[distance] + far[distance]) v."""
    random = np.random.default_rng(seed)
    positions = np.arange(length)
    weights = {
        "near": random.standard_normal((2 * length - 1, heads)).astype(np.float32),
        "far": random.standard_normal((2 * length - 1, heads)).astype(np.float32),
        "distance": (positions[:, None] - positions[None, :] + length - 1).astype(np.int64),
    }
    nodes = [
        helper.make_node("Transpose", ["k"], ["turned"], "turned", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"], "scores"),
        helper.make_node("RelativeBias", ["scores", "near", "distance"], ["nearer"], "nearer", domain=DOMAIN),
        helper.make_node("RelativeBias", ["nearer", "far", "distance"], ["biased"], "biased", domain=DOMAIN),
        helper.make_node("Softmax", ["biased"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"], "y"),
    ]
    shape = (1, heads, length, width)
    graph = helper.make_graph(
        nodes,
        "relative_bias",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("q", "k", "v")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)
