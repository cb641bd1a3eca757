"""What follows from definitions and rules: classes, order, relations, vacuity."""

from __future__ import annotations

import pytest

from smartmem_rules.analysis.derivation import derive
from smartmem_rules.analysis.ordering import decreases
from smartmem_rules.analysis.relations import Relations
from smartmem_rules.analysis.satisfiability import satisfiable, small_witness
from smartmem_rules.analysis.types.typing import check_types
from smartmem_rules.language import syntax as s
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, load_rules

BASE = load_rules()
COMMUTATIVE = frozenset(name for name, overloads in BASE.operators.items() if any(o.commutative for o in overloads))


def rule(text: str, guards: str = "") -> s.Rewrite:
    (item,) = parse_text(f"rewrite made_up in algebra {text}" + (f" where {guards}" if guards else "")).items
    assert isinstance(item, s.Rewrite)
    return item


def guards(text: str) -> tuple[s.Expression, ...]:
    return rule("Relu(x) => x", text).guards


@pytest.mark.parametrize(
    ("name", "layout", "mapping"),
    [
        ("MatMul", "ILD.Variable", "many_to_many"),
        ("Softmax", "ILD.Variable", "many_to_many"),
        ("Conv", "ILD.Variable", "many_to_many"),
        ("Relu", "ILI.Variable", "one_to_one"),
        ("Add", "ILI.Variable", "one_to_many"),
        ("Transpose", "ILD.Fixed", "shuffle"),
        ("Flatten", "ILD.Fixed", "reorganize"),
        ("Expand", "ILI.Fixed", "one_to_many"),
        ("Identity", "ILI.Fixed", "one_to_one"),
    ],
)
def test_classes_follow_from_the_definitions(name: str, layout: str, mapping: str) -> None:
    derived = derive(BASE, BASE.operators[name][0])
    assert derived is not None
    assert (derived.layout, derived.mapping) == (layout, mapping)
    assert derived.layout_reason


def test_most_shipped_operators_can_be_tried() -> None:
    operators = [o for overloads in BASE.operators.values() for o in overloads]
    failed = [o.name for o in operators if derive(BASE, o) is None]
    assert len(failed) < len(operators) // 8, failed


@pytest.mark.parametrize(
    ("text", "given", "smaller"),
    [
        ("Add(x, 0) => x", "", True),
        ("Add(Mul(a, b), Mul(a, c)) => Mul(a, Add(b, c))", "", True),
        ("Mul(a, Add(b, c)) => Add(Mul(a, b), Mul(a, c))", "", False),
        ("Div(x, c) => Mul(x, Reciprocal(c))", "constant(c)", True),
        ("Div(x, c) => Mul(x, Reciprocal(c))", "", False),
        ("Mul(x, y) => Mul(y, x)", "", False),
        ("Add(Neg(x), Neg(x)) => Mul(x, -2)", "", True),
    ],
)
def test_order(text: str, given: str, smaller: bool) -> None:
    assert decreases(rule(text, given), BASE.operators) is smaller


@pytest.mark.parametrize(
    ("general", "specific", "covered"),
    [
        ("Add(x, 0) => x", "Add(y, 0) => y", True),
        ("Add(x, 0) => x", "Add(0, y) => y", True),
        ("Add(x, 0) => x", "Add(Mul(a, b), 0) => Mul(a, b)", True),
        ("Add(x, 0) => x", "Add(x, 1) => x", False),
        ("Add(x, y) => Add(y, x)", "Add(x, x) => Add(x, x)", True),
        ("Mul(x, x) => Pow(x, 2)", "Mul(x, y) => Pow(x, 2)", False),
        ("Transpose(x; perm = p) => x", "Transpose(x; perm = [0]) => x", True),
        ("Transpose(x; perm = [0]) => x", "Transpose(x; perm = p) => x", False),
        ("Sub(x, 0) => x", "Sub(0, x) => x", False),
        ("Add(x, y) <=> Add(y, x)", "Add(a, b) => Add(b, a)", True),
    ],
)
def test_subsumption(general: str, specific: str, covered: bool) -> None:
    assert Relations(COMMUTATIVE).subsumes(rule(general), rule(specific)) is covered


def test_guards_narrow_a_rule() -> None:
    relations = Relations(COMMUTATIVE)
    free, bound = rule("Add(x, 0) => x"), rule("Add(y, 0) => y", "rank(y) == 2, constant(y)")
    assert relations.subsumes(free, bound)
    assert not relations.subsumes(bound, free)
    assert relations.subsumes(rule("Add(z, 0) => z", "constant(z)"), bound)


def test_inverse_pairs() -> None:
    relations = Relations(COMMUTATIVE)
    there, back = rule("Add(x, Neg(y)) => Sub(x, y)"), rule("Sub(a, b) => Add(a, Neg(b))")
    assert relations.inverse(there, back)
    assert relations.inverse(back, there)
    only_constants = rule("Sub(a, b) => Add(a, Neg(b))", "constant(b)")
    assert not relations.inverse(rule("Add(x, Neg(y)) => Sub(x, y)", "not constant(y)"), only_constants)


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("rank(x) > 2, rank(x) < 4", True),
        ("rank(x) > 2, rank(x) < 3", False),
        ("rank(x) < 0", False),
        ("extent(x, 0) < 1", True),  # of empty tensors
        ("extent(x, 0) < 0", False),
        ("constant(x), not constant(x)", False),
        ("constant(x) or rank(x) == 2, not constant(x), rank(x) != 2", False),
        ("value(x) > 0.25, value(x) < 0.5", True),
        ('p == "a", p == "b"', False),
        ("shape(x) == [2], rank(x) == 3", False),
        ("shape(x) == [2, n], rank(x) == 2, extent(x, 0) == 2, shape(x)[-1] == 7", True),
        ("shape(x) == [2, n], n == 3, extent(x, -1) == 4", False),
        ("p == [0, 1], p == [0, 1, 2]", False),
        ("p == q, rank(p) == 2, q == [0, 1, 2]", False),
        ("p == [0, *q], rank(p) == 7", True),  # of any length
        ("p == [0, 1] or rank(p) == 3, rank(p) == 3", True),
        ("shape(x) != [2], rank(x) == 3", True),
        ("n % 2 == 0, n % 2 == 1", False),
    ],
)
def test_vacuous_guards(text: str, possible: bool) -> None:
    pytest.importorskip("z3")
    assert satisfiable(guards(text)) is possible


def test_small_values_spare_the_solver() -> None:
    assert small_witness(guards("c > 0, 0 <= a, a < c"), frozenset({"c"}))
    assert not small_witness(guards("c > 4, c < 4"), frozenset({"c"}))


@pytest.mark.parametrize(
    ("text", "given", "agree", "differ"),
    [
        ("Add(x, y) => Add(y, x)", "", True, False),
        ("Mul(Mul(x, c), d) => Mul(x, Mul(c, d))", "constant(c), constant(d)", True, False),
        ("Add(x, y) => x", "", True, True),
        ("Add(x, y) => x", "shape(x) == shape(y)", True, False),
        ("ReduceSum(x; axes = [0], keepdims = 1) => ReduceSum(x; axes = [0], keepdims = 0)", "", False, True),
    ],
)
def test_types_of_both_sides(text: str, given: str, agree: bool, differ: bool) -> None:
    made = rule(text, given)
    result = check_types(BASE, made.left, made.right, made.guards)
    assert (result.agreed > 0, result.differing is not None) == (agree, differ)


def test_a_user_base_is_enough() -> None:
    base = RuleBase()
    (operator,) = parse_text("operator Twice(x: T[*S]) -> y: T[*S] { y[*i] = 2 * x[*i] }").items
    assert isinstance(operator, s.Operator)
    derived = derive(base, operator)
    assert derived is not None
    assert derived.mapping == "one_to_one"
