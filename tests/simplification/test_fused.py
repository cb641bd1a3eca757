"""Nodes that ONNX Runtime computes as one operator stay together where the model's opset has no such operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import smartmem_rules as sm
from smartmem_rules.graph.loading import load_model
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.rewriting.simplifying import seen_by_rules, simplified
from tests.simplification.models import drawn, kinds, model
from tests.simplification.test_simplify import node

MODELS = Path(__file__).parents[2] / "examples" / "models"
GELU = ["Div", "Erf", "Add", "Mul", "Mul"]
CONSTANTS = {
    "root": np.float32(1.4142135),
    "one": np.float32(1),
    "half": np.float32(0.5),
    "three": np.float32(3),
    "w": drawn([8, 8]),
}


def written_out(opset: int) -> onnx.ModelProto:
    """A Gelu of five nodes, whose last factor the product behind it could take, after two nodes that become one."""
    nodes = [
        node("Relu", "x", "a"),
        node("Relu", "a", "b"),
        node("Div", "b root", "c"),
        node("Erf", "c", "d"),
        node("Add", "d one", "e"),
        node("Mul", "b e", "f"),
        node("Mul", "f half", "g"),
        node("MatMul", "g w", "y"),
    ]
    return model(nodes, {"x": [4, 8]}, ["y"], CONSTANTS, opset=opset)


def kernels(proto: onnx.ModelProto, path: str) -> list[str]:
    """The operators that ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = path
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return kinds(onnx.load(path))


def test_the_nodes_of_an_operator_that_the_opset_lacks_stay(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = sm.simplify(written_out(17))
    assert kinds(made) == ["Relu", *GELU, "MatMul"]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(made.graph.initializer[-1]), CONSTANTS["w"])
    path = str(tmp_path_factory.mktemp("fused") / "optimized.onnx")
    assert "Gelu" in kernels(made, path)


@pytest.mark.exhaustive  # seconds, for a bound
def test_a_model_of_thousands_of_views_leaves_room_for_what_follows_them() -> None:
    options = Options()
    given, folder = load_model(MODELS / "cswin_tiny.onnx")
    found = simplified(seen_by_rules(given, folder, options), options)
    assert found.stopped is None
    assert found.after.kinds["Erf"] == found.after.kinds["Div"] == 25
    assert found.after.nodes <= 1800


def test_an_operator_of_the_opset_is_written() -> None:
    assert kinds(sm.simplify(written_out(20))) == ["Relu", "Gelu", "MatMul"]


def test_other_factors_still_go_into_products() -> None:
    given = written_out(17)
    given.graph.node.insert(7, node("Mul", "g three", "h"))
    given.graph.node[8].input[0] = "h"
    made = sm.simplify(given)
    assert kinds(made) == ["Relu", *GELU, "MatMul"]
    np.testing.assert_allclose(onnx.numpy_helper.to_array(made.graph.initializer[-1]), 3 * CONSTANTS["w"])


def test_a_part_of_the_pattern_alone_is_nothing_special() -> None:
    nodes = [node("Relu", "x", "a"), node("Mul", "a half", "g"), node("MatMul", "g w", "y")]
    made = sm.simplify(model(nodes, {"x": [4, 8]}, ["y"], CONSTANTS, opset=17))
    assert kinds(made) == ["Relu", "MatMul"]
