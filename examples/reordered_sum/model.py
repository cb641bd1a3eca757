"""A sum of many terms, of which the first and the last ones have a common factor."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

RULES = Path(__file__).parent / "reordered_sum.smr"


def build(between: int = 3, rows: int = 16, columns: int = 32) -> onnx.ModelProto:
    """y = x*a + sin(t0) + ... + sin(tn) + x*b."""
    terms = [f"t{place}" for place in range(between)]
    nodes = [helper.make_node("Mul", ["x", "a"], ["first"], "first")]
    total = "first"
    for term in terms:
        nodes.append(helper.make_node("Sin", [term], [f"sin_{term}"], f"sin_{term}"))
        nodes.append(helper.make_node("Add", [total, f"sin_{term}"], [f"with_{term}"], f"with_{term}"))
        total = f"with_{term}"
    nodes.append(helper.make_node("Mul", ["x", "b"], ["last"], "last"))
    nodes.append(helper.make_node("Add", [total, "last"], ["y"], "sum"))
    names = ["x", "a", "b", *terms]
    graph = helper.make_graph(
        nodes,
        "reordered_sum",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (rows, columns)) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
