"""An attention whose scores are one operator of a custom domain."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

RULES = Path(__file__).parent / "own_attention.smr"
DOMAIN = "example.attention"


def build(heads: int = 2, rows: int = 24, width: int = 16) -> onnx.ModelProto:
    """y = softmax(q k^T / sqrt d) v."""
    nodes = [
        helper.make_node("ScaledScores", ["q", "k"], ["scores"], "scores", domain=DOMAIN),
        helper.make_node("Softmax", ["scores"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"], "y"),
    ]
    shape = (heads, rows, width)
    graph = helper.make_graph(
        nodes,
        "own_attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("q", "k", "v")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
