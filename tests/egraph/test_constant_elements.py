"""Guards about the elements of constants, in the e-graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.constants import LOOKED_AT, Constants, Recipe
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.expr import TensorType
from tests.egraph.building import Builder

RULE = """rewrite asked in algebra
    Relu(Add(x, c)) => Relu(Sub(x, Neg(c)))
    where constant(c), {guard}
    explores
"""
TRIANGLE = np.tril(np.arange(9.0).reshape(3, 3)).astype(np.float32)


def near_misses(tmp_path: Path, guard: str, constant: np.ndarray[Any, Any] | None) -> list[str]:
    """Why the rule does not fire; nothing where it does. Without a constant, c is an input of the model."""
    path = tmp_path / "mine.smr"
    path.write_text(RULE.format(guard=guard))
    base = load_rules([path])
    builder = Builder(base)
    c = builder.input("c", (3, 3)) if constant is None else builder.constant("c", constant)
    graph = builder.finish(builder.add("Relu", builder.add("Add", builder.input("x", (3, 3)), c)))
    saturation = saturate(graph, base, ["algebra"], disable=base.rule_names() - {"asked"})
    return [] if saturation.statistics["asked"].fired else [miss.reason for miss in saturation.near_misses]


@pytest.mark.parametrize(
    ("guard", "constant", "fires"),
    [
        ("non_negative(c)", TRIANGLE, True),
        ("non_negative(c)", TRIANGLE - 1, False),
        ("non_negative(c)", TRIANGLE * np.nan, False),
        ("lower_triangular(c)", TRIANGLE, True),
        ("lower_triangular(c)", TRIANGLE.T.copy(), False),
        ("upper_triangular(c)", TRIANGLE.T.copy(), True),
        ("upper_triangular(c)", TRIANGLE[:1], False),
        ("arange(c)", np.arange(3, dtype=np.float32), True),
        ("arange(c)", np.arange(3, dtype=np.float32) + 1, False),
        ("(sum(*i < shape(c)) c[*i]) == 3", np.arange(3, dtype=np.float32), True),
        ("(max(*i < shape(c)) abs(c[*i])) < 2", np.arange(3, dtype=np.float32), False),
        ("all(*i < shape(c)) (c[*i] == extent(x, 0) / 2)", np.array(1.5, np.float32), True),
        ("non_negative(c)", None, False),
    ],
)
def test_guards_see_all_elements(
    tmp_path: Path, guard: str, constant: np.ndarray[Any, Any] | None, fires: bool
) -> None:
    misses = near_misses(tmp_path, guard, constant)
    assert bool(misses) is not fires, misses


def test_reads_outside_of_a_constant_do_not_hold(tmp_path: Path) -> None:
    misses = near_misses(tmp_path, "all(i < 5) (c[i] >= 0)", np.arange(3, dtype=np.float32))
    assert "outside" in misses[0] or "beyond" in misses[0]


def test_large_computed_constants_are_not_looked_at() -> None:
    constants = Constants()
    type_ = TensorType("float32", (LOOKED_AT + 1,))
    given = constants.given("w", type_, {"w": np.zeros(type_.shape, np.float32)})
    computed = constants.computed("Neg", Recipe((), (given,), "%0"), type_)
    assert constants.looked_at(given) is not None
    assert constants.looked_at(computed) is None
