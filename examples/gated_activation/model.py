"""A feed-forward block with a gated activation: three products, a scale of the gate,
one operator of a custom domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "gated_activation.smr"
DOMAIN = "example.activations"


def build(rows: int = 24, width: int = 32, hidden: int = 64, seed: int = 0) -> onnx.ModelProto:
    """y = gated(x a, (x b) * 1.702) c."""
    random = np.random.default_rng(seed)
    weights = {
        name: (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        for name, shape in (("a", (width, hidden)), ("b", (width, hidden)), ("c", (hidden, width)))
    }
    weights["scale"] = np.array(1.702, np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["value"], "value"),
        helper.make_node("MatMul", ["x", "b"], ["gate"], "gate"),
        helper.make_node("Mul", ["gate", "scale"], ["scaled"], "scaled"),
        helper.make_node("GatedActivation", ["value", "scaled"], ["activated"], "activated", domain=DOMAIN),
        helper.make_node("MatMul", ["activated", "c"], ["y"], "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "gated_activation",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, width))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, width))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)
