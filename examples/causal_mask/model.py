"""An attention whose scores are masked by a constant that is added to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "causal_mask.smr"


def build(heads: int = 2, rows: int = 24, width: int = 16, diagonal: int = 1) -> onnx.ModelProto:
    """y = softmax(q k^T + mask) v; the mask is -inf from that diagonal on: 1 makes it causal."""
    mask = np.triu(np.full((rows, rows), -np.inf, np.float32), diagonal)
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"], "scores"),
        helper.make_node("Add", ["scores", "mask"], ["masked"], "masked"),
        helper.make_node("Softmax", ["masked"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"], "y"),
    ]
    shapes = {"q": (heads, rows, width), "k": (heads, width, rows), "v": (heads, rows, width)}
    graph = helper.make_graph(
        nodes,
        "causal_mask",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes["v"])],
        [numpy_helper.from_array(mask, "mask")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
