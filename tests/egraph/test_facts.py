"""Facts in the e-graph: what rules derive, what is known of constants, and what asks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from examples.known_signs.model import RULES
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.egraph.saturation import Bounds, saturate
from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.primitives import Array

FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32


def saturated(
    base: RuleBase, *nodes: tuple[str, list[str], str], dtype: int = FLOAT, constants: dict[str, Array] | None = None
) -> Saturation:
    """The forms of a model with one input `x`."""
    given = constants or {}
    graph = helper.make_graph(
        [helper.make_node(operator, operands, [result], result) for operator, operands, result in nodes],
        "facts",
        [helper.make_tensor_value_info("x", dtype, (2, 3))],
        [helper.make_tensor_value_info(nodes[-1][2], dtype, (2, 3))],
        [numpy_helper.from_array(array, name) for name, array in given.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return saturate(
        import_model(model, base), base, ["eliminate", "algebra"], bounds=Bounds(enodes=100_000, seconds=1e9)
    )


def equal(found: Saturation, one: str, other: str) -> bool:
    return found.tensor_class[one] == found.tensor_class[other]


@pytest.fixture(scope="module")
def base() -> RuleBase:
    return load_rules([RULES])


@pytest.mark.parametrize(
    ("nodes", "known"),
    [
        ([("Exp", ["x"], "a")], True),
        ([("Softmax", ["x"], "a")], True),
        ([("Mul", ["x", "x"], "a")], True),
        ([("Exp", ["x"], "e"), ("Mul", ["x", "x"], "m"), ("Add", ["e", "m"], "a")], True),
        ([("Exp", ["x"], "e"), ("Add", ["e", "x"], "a")], False),
        ([("Sigmoid", ["x"], "e"), ("Sub", ["x", "e"], "a")], False),
        ([("Tanh", ["x"], "a")], False),
    ],
)
def test_a_rule_is_applied_where_its_fact_is_known(
    base: RuleBase, nodes: list[tuple[str, list[str], str]], known: bool
) -> None:
    found = saturated(base, *nodes, ("Relu", ["a"], "y"))
    assert equal(found, "y", "a") == known
    assert found.stopped is None


@pytest.mark.parametrize(
    ("values", "known"), [([0.0, 1.0, 2.0], True), ([1.0, -1.0, 2.0], False), ([-0.0, np.nan, np.inf], True)]
)
def test_constants_are_known_by_their_elements(base: RuleBase, values: list[float], known: bool) -> None:
    found = saturated(
        base,
        ("Exp", ["x"], "e"),
        ("Add", ["e", "c"], "a"),
        ("Abs", ["a"], "y"),
        constants={"c": np.array(values, np.float32)},
    )
    assert equal(found, "y", "a") == known


def test_an_analysis_of_floats_says_nothing_of_integers(base: RuleBase) -> None:
    """The square of an integer overflows."""
    found = saturated(base, ("Mul", ["x", "x"], "a"), ("Abs", ["a"], "y"), dtype=INT)
    assert not equal(found, "y", "a")
    assert found.statistics["of_squares"].fired == 0
    assert any("never_below_zero says nothing of it" in miss.reason for miss in found.near_misses)


def test_a_derivation_that_is_switched_off_derives_nothing() -> None:
    found = saturated(load_rules([RULES], ["of_values.Exp"]), ("Exp", ["x"], "a"), ("Relu", ["a"], "y"))
    assert not equal(found, "y", "a")
    assert "of_values.Exp" not in found.statistics


def test_nothing_is_derived_that_no_rule_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text(RULES.read_text().split("rewrite ")[0])
    found = saturated(load_rules([path]), ("Exp", ["x"], "a"), ("Relu", ["a"], "y"))
    assert "of_values.Exp" not in found.statistics


def test_a_fact_of_one_form_is_known_of_all(base: RuleBase) -> None:
    """|x| |x| is known by its own form, and Abs(x * x) stays that form's equal."""
    found = saturated(
        base, ("Abs", ["x"], "e"), ("Mul", ["e", "e"], "a"), ("Identity", ["a"], "b"), ("Relu", ["b"], "y")
    )
    assert equal(found, "y", "a")
