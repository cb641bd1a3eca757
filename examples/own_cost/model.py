"""A projection of many rows, whose small weights are scaled when the model runs."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

RULES = Path(__file__).parent / "own_cost.smr"


def build(rows: int = 512, depth: int = 16, columns: int = 64) -> onnx.ModelProto:
    """y = x (w * s), where w and s are inputs."""
    nodes = [
        helper.make_node("Mul", ["w", "s"], ["scaled"], "scale"),
        helper.make_node("MatMul", ["x", "scaled"], ["y"], "project"),
    ]
    shapes = {"x": (rows, depth), "w": (depth, columns), "s": (columns,)}
    graph = helper.make_graph(
        nodes,
        "own_cost",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
