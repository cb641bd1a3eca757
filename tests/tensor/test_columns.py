"""Long lists of the rule language: by arrays they are what they are one by one, to the bit."""

from __future__ import annotations

import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.builtins import DefinitionError, Value
from smartmem_rules.tensor.definitions.columns import MANY, list_by_arrays
from smartmem_rules.tensor.definitions.values import Scope, evaluate

FUNCTIONS = load_rules().functions
WHOLE = tuple(range(-40, 60))
SPLIT = tuple(v / 7 for v in WHOLE)
FIVE = (3, 1, 4, 1, 5)
"""A list that does not depend on the member."""
EQUAL = [
    "v + 3", "v - 0.5", "-v", "v * v", "v * 0.1", "v / 3", "v // 3", "v % 7", "v // 0.3", "v % 0.3", "-v // 2.5",
    "v ** 3", "single(v * 0.1)", "floor(v / 3)", "ceil(v / 3)", "round(v / 2)", "int(v / 3)", "abs(v)", "sign(v)",
    "sqrt(abs(v))", "min(v, v * v)", "max(-v, v)", "clamp(v * 1.0, 0.0, 9.5)", "ceil_div(floor(v), 4)",
    "if v < 0 then -v else v * 2", "if v < 0 then 1.0 else 1 / (v + 1.5)", "if v == 5 or v > 7 then 1 else 0",
    "if not v < 3 and v != 5 then [v, 1] else [2 * v, 2]", "v < 3", "[v + k for k in 3]",
    "[v * k for k in FIVE if k > 1]", "sum_of([v * 0.1, v * 0.2, v * 0.3])", "[v, v + 1][1]", "FIVE[2] + v",
    "max([v, 3 * v, v * v])", "[]", "7", "[FIVE]",
    "floor_of(v * 0.3)", "[v, *[v + j for j in 2]]",
    "resize_coordinate(\"half_pixel\", v, 13, 29, single(29 / 13), 0, 1)",
    "resize_coordinate(\"align_corners\", v, 13, 29, single(29 / 13), 0, 1)",
    "resize_source(\"tf_crop_and_resize\", v, floor_of(v), 13)",
    "nearest_position(\"round_prefer_floor\", v)",
    "fixed_point([filter_weight(\"cubic\", -0.75, magnitude(k - v % 1)) for k in range(-1, 3)])",
    "fixed_point([filter_weight(\"linear\", 0, magnitude(k - v * 1.0 % 1)) for k in 2])",
    "pad_source(\"reflect\", floor_of(v), 5)",
]  # fmt: skip
LEFT = [
    "1 / v",
    "v // 0",
    "v * 2 ** 52",
    "1.5e308 * (v + 2)",
    "if v < 0 then 0 else 0.5",
    "FIVE[v]",
    "max(0, v + 0.5)",
    "v % (v - v)",
]
"""What arrays do not compute."""


def scope_of(members: tuple[int | float, ...]) -> Scope:
    return Scope({"V": members, "FIVE": FIVE}, functions=FUNCTIONS)


def comprehension(body: str) -> ast.Comprehension:
    (function,) = parse_text(f"function made(V, FIVE) = [{body} for v in V]").items
    assert isinstance(function, ast.Function)
    assert isinstance(function.body, ast.Comprehension)
    return function.body


def exactly(value: Value) -> object:
    """What tells values apart that Python takes for equal: 0, 0.0, -0.0 and False."""
    return tuple(map(exactly, value)) if isinstance(value, tuple) else (type(value), repr(value))


@pytest.mark.parametrize("members", [WHOLE, SPLIT], ids=["integers", "floats"])
@pytest.mark.parametrize("body", EQUAL)
def test_arrays_give_what_each_member_gives(body: str, members: tuple[int | float, ...]) -> None:
    expr, scope = comprehension(body), scope_of(members)
    found = list_by_arrays(expr, members, scope, evaluate)
    assert found is not None
    assert exactly(found) == exactly(tuple(evaluate(expr.body, scope.with_values(v=v)) for v in members))


@pytest.mark.parametrize("body", LEFT)
def test_what_arrays_may_compute_otherwise_is_left_to_each_member(body: str) -> None:
    assert list_by_arrays(comprehension(body), WHOLE, scope_of(WHOLE), evaluate) is None


@pytest.mark.parametrize("members", [(1, 2.0), (True, False), ("a", "b"), (1 << 60, 1), (float("inf"), 1.0)], ids=str)
def test_members_that_are_no_plain_numbers_are_left(members: tuple[Value, ...]) -> None:
    expr = comprehension("v == v")
    assert list_by_arrays(expr, members, Scope({"V": members}), evaluate) is None


def test_long_lists_are_computed_by_arrays_and_raise_what_their_members_raise() -> None:
    members = tuple(range(MANY))
    assert evaluate(comprehension("v * 2"), scope_of(members)) == tuple(range(0, 2 * MANY, 2))
    with pytest.raises(DefinitionError, match="division by zero"):
        evaluate(comprehension("1 / (v - 9)"), scope_of(members))
