"""Whether arithmetic rounds nowhere, whatever the order: every value is a multiple of one power of two, and small.

A sum, product or maximum of multiples of a power of two is one again; as long as its size over the power fits the
significand, floating point holds it exactly, so any schedule gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smartmem_rules.exchange.kernels import KernelClaim
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, Reduce, Select
from smartmem_rules.tensor.primitives import Array

_SIGNIFICAND = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_FINEST = 40


@dataclass(frozen=True)
class Grid:
    """Values of at most a size that are multiples of 2**unit."""

    size: float
    unit: int

    def fits(self, dtype: str) -> bool:
        """Whether a type holds each of them exactly."""
        bits = _SIGNIFICAND.get(dtype)
        return bits is None or math.ldexp(self.size, -self.unit) <= 2**bits


_ANY_INTEGER = Grid(math.inf, 0)
_TRUTH = Grid(1.0, 0)
_COMPARES = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "isnan", "isinf"})
_SAME = frozenset({"neg", "abs", "sign"})
_EITHER = frozenset({"min", "max"})


def grid_of(values: Array) -> Grid | None:
    """The grid on which some values lie; None where it is too fine, or one is not finite."""
    if values.dtype.kind != "f":
        return _ANY_INTEGER if values.dtype.kind in "iub" else None
    wide = np.unique(values.astype(np.float64))
    if not np.isfinite(wide).all():
        return None
    size = float(np.abs(wide).max(initial=0.0))
    for unit in range(0, -_FINEST, -1):
        if np.array_equal(scaled := np.ldexp(wide, -unit), np.rint(scaled)):
            return Grid(size, unit)
    return None


def exact_stores(claim: KernelClaim, known: Mapping[str, Grid], storage: Mapping[str, str]) -> dict[str, Grid]:
    """The tensors of which a kernel computes every element exactly.

    Args:
        known: the grids of the tensors that it reads; those of others are not known.
        storage: the types in which memory holds the tensors that it stores.
    """
    grids = dict(known)
    for name, stage in claim.stages.items():
        found = _grid(stage.value, grids)
        if found is not None:
            grids[name] = found
    exact: dict[str, Grid] = {}
    inexact: set[str] = set()
    for store in claim.stores:
        found = _grid(store.value, grids)
        if found is None or not found.fits(storage[store.tensor]):
            inexact.add(store.tensor)
            grids.pop(store.tensor, None)
            continue
        before = exact.get(store.tensor, found)
        exact[store.tensor] = grids[store.tensor] = _both(before, found)
    return {name: grid for name, grid in exact.items() if name not in inexact}


def _both(left: Grid, right: Grid) -> Grid:
    return Grid(max(left.size, right.size), min(left.unit, right.unit))


def _grid(expr: Expr, grids: Mapping[str, Grid]) -> Grid | None:
    """The grid of an expression's values, None where it may round."""
    found = _unchecked(expr, grids)
    if found is None and not expr.dtype.startswith(("float", "bfloat")):
        return None
    return found if found is not None and found.fits(expr.dtype) else None


def _unchecked(expr: Expr, grids: Mapping[str, Grid]) -> Grid | None:
    match expr:
        case Const(value=value):
            return grid_of(np.asarray(value))
        case Read(tensor=tensor):
            return grids.get(tensor)
        case Select(then=then, otherwise=otherwise):
            return _joined(then, otherwise, grids)
        case Reduce(kind="sum", variables=variables, body=body):
            inner = _grid(body, grids)
            count = math.prod(v.extent for v in variables)
            return None if inner is None else Grid(inner.size * count, inner.unit)
        case Reduce(kind="max" | "min" | "any" | "all", body=body):
            return _grid(body, grids)
        case Apply():
            return _applied(expr, grids)
    return None


def _joined(left: Expr, right: Expr, grids: Mapping[str, Grid]) -> Grid | None:
    a, b = _grid(left, grids), _grid(right, grids)
    return None if a is None or b is None else _both(a, b)


def _applied(expr: Apply, grids: Mapping[str, Grid]) -> Grid | None:
    function, arguments = expr.function, expr.arguments
    found = [_grid(argument, grids) for argument in arguments]
    known = [grid for grid in found if grid is not None]
    if len(known) < len(found):
        return None
    if function in _COMPARES:
        return _TRUTH
    if function in _SAME or function in _EITHER:
        return _both(known[0], known[-1])
    if function == "select":
        return _both(known[1], known[2])
    if function in ("add", "sub"):
        return Grid(known[0].size + known[1].size, min(known[0].unit, known[1].unit))
    if function == "mul":
        return Grid(known[0].size * known[1].size, known[0].unit + known[1].unit)
    if function == "cast" and (known[0].unit >= 0 or expr.dtype.startswith("float")):
        return known[0]
    if function == "div" and isinstance(arguments[1], Const) and expr.dtype.startswith("float"):
        return _divided(known[0], float(arguments[1].value))
    return None


def _divided(grid: Grid, divisor: float) -> Grid | None:
    """The quotients by a power of two."""
    mantissa, exponent = math.frexp(abs(divisor))
    return Grid(grid.size / abs(divisor), grid.unit - exponent + 1) if mantissa == 0.5 else None
