"""Element types in attributes of graphs that are written as ONNX models."""

from __future__ import annotations

import onnx
import pytest

from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.writing.expressing import express


@pytest.mark.parametrize(
    ("named", "number"), [("none", onnx.TensorProto.UNDEFINED), ("int8", onnx.TensorProto.INT8)], ids=str
)
def test_an_element_type_that_is_left_open_is_undefined(named: str, number: int) -> None:
    floats, one = TensorType("float32", (3,)), ()
    node = Node("q", "QuantizeLinear", ("x", "s", "z"), {"output_dtype": named}, ("y",))
    graph = Graph(
        name="one",
        nodes=[node],
        types={
            "x": floats,
            "s": TensorType("float32", one),
            "z": TensorType("int8", one),
            "y": TensorType("int8", (3,)),
        },
        constants={},
        inputs=["x", "s", "z"],
        outputs=["y"],
    )
    (written,) = express(graph, Instances(load_rules()), 23).graph.node
    (found,) = (attribute.i for attribute in written.attribute if attribute.name == "output_dtype")
    assert found == number
