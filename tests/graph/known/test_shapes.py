"""Shape arithmetic gives what kernels give: integers wrap, and an extent has to fit its element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.graph.known.shapes import evaluate_shapes
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Const, Equation, Expr, Read, Reduce, TensorType
from smartmem_rules.tensor.extents import Dimension, SymbolicExtentError, symbol
from smartmem_rules.tensor.index import variable

PLACE = Var("i", 2)
N = symbol(Dimension("n", 1, 300))
X = Read("x", (variable(PLACE),), "int64")


def evaluated(body: Expr, dtype: str, x: list[Any]) -> list[Any]:
    equation = Equation("y", (PLACE,), body, TensorType(dtype, (2,)))
    return list(evaluate_shapes([equation], {"x": np.array(x, object)})["y"])


def test_numbers_wrap_as_their_type_does() -> None:
    assert evaluated(Apply("sub", (X, Const(5, "uint8")), "uint8"), "uint8", [3, 7]) == [254, 2]
    assert evaluated(Apply("mul", (X, X), "int32"), "int32", [1 << 16, 3]) == [0, 9]
    assert evaluated(Apply("cast", (X,), "uint8"), "uint8", [-2, 300]) == [254, 44]
    assert evaluated(Apply("cast", (X,), "int64"), "int64", [2**64 - 1, 1.9]) == [-1, 1]
    total = Reduce("sum", (Var("k", 2),), Read("x", (variable(Var("k", 2)),), "int64"), "int64")
    assert evaluated(total, "int64", [2**63 - 1, 1]) == [-(2**63)] * 2


def test_an_extent_has_to_fit_its_type() -> None:
    assert evaluated(Apply("add", (X, Const(1, "int32")), "int32"), "int32", [N, 4]) == [N + 1, 5]
    for wrapping in (Apply("cast", (X,), "uint8"), Apply("sub", (X, Const(2, "uint32")), "uint32")):
        with pytest.raises(SymbolicExtentError, match=f"needed as {wrapping.dtype}"):
            evaluated(wrapping, wrapping.dtype, [N, 4])


def test_what_divides_by_zero_is_left_to_the_device() -> None:
    with pytest.raises(SymbolicExtentError, match="by zero"):
        evaluated(Apply("div", (X, Const(0, "int64")), "int64"), "int64", [N, 4])
    with pytest.raises(SymbolicExtentError, match="by zero"):
        evaluated(Apply("mod", (Const(3, "int64"), X), "int64"), "int64", [0, 4])
