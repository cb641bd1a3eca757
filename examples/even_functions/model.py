"""Even functions of what only differs in its sign."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

RULES = Path(__file__).parent / "even_functions.smr"
DOMAIN = "example.even"


def build(rows: int = 6, width: int = 16) -> onnx.ModelProto:
    """y = bump(-x) * rectified(|x|)."""
    nodes = [
        helper.make_node("Neg", ["x"], ["negated"], "negated"),
        helper.make_node("Bump", ["negated"], ["bump"], "bump", domain=DOMAIN),
        helper.make_node("Abs", ["x"], ["absolute"], "absolute"),
        helper.make_node("Rectified", ["absolute"], ["rectified"], "rectified", domain=DOMAIN, least=0.25),
        helper.make_node("Mul", ["bump", "rectified"], ["y"], "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "even_functions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, width))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, width))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
