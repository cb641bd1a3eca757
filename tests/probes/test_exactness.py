"""What is said to be exact is so: no order of sums and no fused multiplication can round."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.exchange.kernels import KernelClaim, Store
from smartmem_rules.probes.exactness import Grid, exact_stores, grid_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, Reduce
from smartmem_rules.tensor.index import variable

ROW, K = Var("i", 4), Var("k", 1000)
A = Read("a", (variable(ROW),), "float32")
B = Read("b", (variable(K),), "float32")
SMALL = {"a": Grid(2.0, -1), "b": Grid(2.0, 0)}


def exact(value: Expr, storage: str = "float32", known: dict[str, Grid] | None = None) -> Grid | None:
    claim = KernelClaim(name="k", stages={}, stores=(Store(tensor="y", indices=(variable(ROW),), value=value),))
    return exact_stores(claim, SMALL if known is None else known, {"y": storage}).get("y")


def total(value: Expr) -> Expr:
    return Reduce("sum", (K,), value, "float32")


def apply(function: str, *arguments: Expr) -> Expr:
    return Apply(function, arguments, "float32")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (apply("mul", A, B), Grid(4.0, -1)),
        (apply("add", A, B), Grid(4.0, -1)),
        (apply("max", A, Const(0.0, "float32")), Grid(2.0, -1)),
        (total(apply("mul", A, B)), Grid(4000.0, -1)),
        (apply("div", A, Const(8.0, "float32")), Grid(0.25, -4)),
        (apply("neg", A), Grid(2.0, -1)),
        (apply("exp", A), None),
        (apply("div", A, Const(3.0, "float32")), None),
        (apply("mul", A, Const(0.1767766922712326, "float32")), None),
        (apply("add", Read("unknown", (), "float32"), A), None),
    ],
)
def test_grids(value: Expr, expected: Grid | None) -> None:
    assert exact(value) == expected


def test_sums_that_outgrow_the_significand_are_not_exact() -> None:
    wide = {"a": Grid(2.0**12, 0), "b": Grid(2.0**12, 0)}
    assert exact(apply("mul", A, B), known=wide) is not None
    assert exact(total(apply("mul", A, B)), known=wide) is None


def test_memory_of_halves_holds_less() -> None:
    assert exact(total(apply("mul", A, B)), "float16") is None
    assert exact(apply("mul", A, B), "float16") is not None


def test_a_tensor_is_exact_only_if_each_store_of_it_is() -> None:
    indices = (variable(ROW),)
    good, bad = (Store(tensor="y", indices=indices, value=v) for v in (A, apply("exp", A)))
    claim = KernelClaim(name="k", stages={}, stores=(good, bad))
    assert exact_stores(claim, SMALL, {"y": "float32"}) == {}


def test_grids_of_values() -> None:
    assert grid_of(np.array([0.0, -1.5, 3.0], np.float32)) == Grid(3.0, -1)
    assert grid_of(np.array([0.1], np.float32)) == Grid(float(np.float32(0.1)), -27)
    assert grid_of(np.array([np.inf], np.float32)) is None
    assert grid_of(np.array([1e-30], np.float64)) is None
