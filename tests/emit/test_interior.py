"""Windows inside an image: the test from outside agrees with asking every element."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from smartmem_rules.emit.c.boundary_split import interior
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Condition,
    Const,
    Equation,
    Expr,
    Logic,
    Read,
    Reduce,
    Select,
    TensorType,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations


def _window(seed: int) -> tuple[Expr, tuple[Var, ...], dict[str, np.ndarray]]:
    """A sum over a window of a padded image, as a convolution of one channel reads it."""
    draw = random.Random(seed)
    size, kernel = draw.randint(3, 9), draw.randint(1, 4)
    stride, pad, dilation = draw.randint(1, 3), draw.randint(0, 3), draw.randint(1, 2)
    reach = dilation * (kernel - 1) + 1
    out = max(1, (size + 2 * pad - reach) // stride + 1)
    rows = Var("y", out), Var("x", out)
    window = Var("ky", kernel), Var("kx", kernel)
    place = [variable(r) * stride + variable(w) * dilation + (-pad) for r, w in zip(rows, window, strict=True)]
    tests: list[Condition] = []
    for index in place:
        tests += [Compare("<=", Index(0), index), Compare("<", index, Index(size))]
    read = Select(Logic("and", tuple(tests)), Read("x", tuple(place), "float32"), Const(0.0, "float32"), "float32")
    taps = Read("w", tuple(variable(w) for w in window), "float32")
    body = Reduce("sum", window, Apply("mul", (read, taps), "float32"), "float32")
    values = np.random.default_rng(seed)
    feeds = {"x": values.standard_normal((size, size)), "w": values.standard_normal((kernel, kernel))}
    return body, rows, {name: array.astype(np.float32) for name, array in feeds.items()}


def _holds(condition: Condition, values: dict[Var, Index]) -> bool:
    if isinstance(condition, Logic):
        assert condition.operator == "and"
        return all(_holds(operand, values) for operand in condition.operands)
    flat = Select(condition, Const(1.0, "float32"), Const(0.0, "float32"), "float32")
    decided = substitute_variables(flat, values)
    assert isinstance(decided, Const), "the test depends on variables of the window"
    return decided.value == 1.0


def _image(node: Expr) -> bool:
    return isinstance(node, Read) and node.tensor == "x"


def _value(body: Expr, feeds: dict[str, np.ndarray]) -> float:
    equation = Equation("found", (), body, TensorType("float32", ()))
    return float(evaluate_equations([equation], feeds)["found"])


@pytest.mark.parametrize("seed", range(40))
def test_test_is_exact_and_body_equal(seed: int) -> None:
    body, rows, feeds = _window(seed)
    found = interior(body, (), 6)
    size = feeds["x"].shape[0]
    borders: set[bool] = set()
    for place in itertools.product(*(range(v.extent) for v in rows)):
        values = {v: Index(p) for v, p in zip(rows, place, strict=True)}
        here = substitute_variables(body, values)
        nodes = list(walk(here))
        # a window that lies wholly in the padding reads nothing
        at_border = any(isinstance(n, Select) for n in nodes) or not any(map(_image, nodes))
        borders.add(at_border)
        if found is None:
            continue
        if _holds(found.test, values):
            assert not at_border, f"seed {seed}: the window at {place} of an image of {size} reaches past it"
            interior_value = _value(substitute_variables(found.body, values), feeds)
            assert interior_value == pytest.approx(_value(here, feeds), abs=1e-5), f"seed {seed} at {place}"
        else:
            assert at_border, f"seed {seed}: the window at {place} is inside, but the test says that it is not"
    assert found is not None or len(borders) == 1, f"seed {seed}: some windows are inside, which no test tells"


def test_conditions_of_other_kinds_stay() -> None:
    i, k = Var("i", 8), Var("k", 3)
    read = Read("x", (variable(i),), "float32")
    even = Select(Compare("==", variable(k), Index(1)), read, Const(0.0, "float32"), "float32")
    assert interior(Reduce("sum", (k,), even, "float32"), (), 6) is None
    mixed = Compare("<", (variable(i) + variable(k)) % 5, Index(3))
    assert (
        interior(Reduce("sum", (k,), Select(mixed, read, Const(0.0, "float32"), "float32"), "float32"), (), 6) is None
    )
