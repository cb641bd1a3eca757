"""Types with unknown ranks and extents: what is proved, what is not, and that trying agrees."""

from __future__ import annotations

import pytest

from smartmem_rules.analysis.types.environment import Clash, Environment, Unproven
from smartmem_rules.analysis.types.shapes import Dim, Rest, Shape, add, dim, join
from smartmem_rules.analysis.types.symbolic import prove_types
from smartmem_rules.analysis.types.typing import check_types
from smartmem_rules.language import syntax as s
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, load_rules

BASE = load_rules()


def rule(text: str) -> s.Rewrite:
    (item,) = parse_text(f"rewrite made_up in algebra {text}").items
    assert isinstance(item, s.Rewrite)
    return item


def proof(text: str, base: RuleBase = BASE) -> bool | None:
    made = rule(text)
    found = prove_types(base, made.left, made.right, made.guards)
    return None if found is None else found.holds


@pytest.mark.parametrize(
    "text",
    [
        "Add(x, y) => Add(y, x)",
        "Add(Add(x, y), z) => Add(x, Add(y, z))",
        "Add(x, x) => Mul(x, 2)",
        "Add(x, y) => x where broadcast(shape(x), shape(y)) == shape(x)",
        "Add(x, y) => x where shape(x) == shape(y)",
        "Neg(MatMul(x, w)) => MatMul(x, Neg(w))",
        "Add(MatMul(x, v), MatMul(x, w)) => MatMul(x, Add(v, w)) where shape(v) == shape(w)",
        "Neg(Transpose(x; @p)) => Transpose(Neg(x); @p)",
        "Transpose(Transpose(x; perm = [1, 0]); perm = [1, 0]) => x where rank(x) == 2",
        "Relu(Conv(x, w; @c)) => Conv(x, Neg(w); @c)",
        "ReduceSum(Neg(x); @r) => Neg(ReduceSum(x; @r))",
        "Cast(x; to = \"float32\") => Cast(Cast(x; to = \"float32\"); to = \"float32\")",
        "Gemm(a, w, b; @g) => Gemm(a, w, Neg(b); @g)",
        "Where(c, x, y) => Where(Not(c), y, x)",
    ],
)  # fmt: skip
def test_proved(text: str) -> None:
    assert proof(text) is True
    made = rule(text)
    tried = check_types(BASE, made.left, made.right, made.guards)
    assert tried.differing is None


@pytest.mark.parametrize(
    "text",
    [
        "Add(x, y) => x",
        "Add(x, y) => x where rank(x) == rank(y)",
        "Add(Add(x, y), z) => Add(x, y)",
        "Add(x, y) => x where broadcast(shape(x), shape(y)) == shape(y)",
        "MatMul(x, w) => MatMul(w, x)",
        "MatMul(x, w) => x",
        "Mul(x, c) => x where near(value(c), 1)",
        "Transpose(x; perm = [1, 0]) => x",
        "Neg(Transpose(x; perm = p)) => Transpose(Neg(x))",
        "ReduceSum(x; axes = [0], keepdims = 1) => ReduceSum(x; axes = [0], keepdims = 0)",
        "Softmax(x; axis = a) => ReduceSum(x)",
        "Cast(x; to = \"float32\") => x",
        "Add(Gemm(a, w), k) => Gemm(a, w, k)",
        "Equal(x, y) => Add(x, y)",
    ],
)  # fmt: skip
def test_not_proved(text: str) -> None:
    assert proof(text) is not True


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("Add(x, y) => x", "T[*broadcast(x, y)]", "T[*x]"),
        ("Add(x, y) => Neg(y) where rank(x) == 1, rank(y) == 2", "T[*broadcast([x0], [y0, y1])]", "T[y0, y1]"),
    ],
)
def test_a_refusal_shows_both_types(text: str, left: str, right: str) -> None:
    made = rule(text)
    found = prove_types(BASE, made.left, made.right, made.guards)
    assert found is not None
    assert (found.holds, found.left, found.right) == (False, left, right)


def test_what_is_proved_of_shipped_rules_holds_where_it_is_tried() -> None:
    proved = []
    for made in BASE.rewrites:
        found = None if made.unsound else prove_types(BASE, made.left, made.right, made.guards)
        if found is not None and found.holds:
            proved.append(made.name)
            tried = check_types(BASE, made.left, made.right, made.guards)
            assert tried.differing is None or tried.right.startswith("none"), (made.name, tried)
    assert len(proved) > 50
    assert "bias_after_gemm_bias" in proved


def test_joins() -> None:
    x, y = (Shape((Rest(Environment().fresh(name)),)) for name in "xy")
    y = Shape((Rest(Environment(made=1).fresh("y")),))
    assert join([x, y]) == join([y, x, y])
    assert join([join([x, y]), x]) == join([x, y])
    assert join([x, Shape()]) == x
    assert join([Shape((Dim(2), Dim(1))), Shape((Dim(3),))]) == Shape((Dim(2), Dim(3)))
    assert join([Shape((Dim(1), *x.segments)), x]) == Shape((Dim(1), *x.segments))


def test_what_is_fixed_must_be_known() -> None:
    environment = Environment()
    n, m = dim(environment.fresh("n")), dim(environment.fresh("m"))
    environment.equal_dims(add(n, Dim(1)), Dim(4))
    assert environment.dim(n) == n  # sums are not solved, so nothing is learned
    environment.equal_dims(n, Dim(3))
    assert environment.dim(add(n, m)) == add(Dim(3), m)
    environment.fix()
    with pytest.raises(Clash):
        environment.equal_dims(n, Dim(4))
    with pytest.raises(Unproven):
        environment.equal_dims(m, Dim(4))
