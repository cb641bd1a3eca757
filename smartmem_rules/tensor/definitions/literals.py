"""Literals of definitions: they have no dtype until they meet a typed neighbour."""

from __future__ import annotations

import math

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.builtins import DefinitionError, Value
from smartmem_rules.tensor.expr import Apply, Const, Expr, FromIndex, Reduce, select
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, as_index

WEAK = "number"
"""The dtype of a literal that has not met a typed neighbour yet."""


def from_value(value: Value, expr: ast.Expression) -> Expr:
    """A compile-time number or an index as an element."""
    if isinstance(value, bool):
        return Const(value, "bool")
    if is_symbolic(value):
        return FromIndex(as_index(value), WEAK)  # type: ignore[arg-type]
    if isinstance(value, int | float):
        return Const(value, WEAK)
    if isinstance(value, Index):
        return from_value(value.constant, expr) if value.is_constant else FromIndex(value, "int64")
    raise DefinitionError(f"{expr.span}: an element is needed here")


def unify(left: Expr, right: Expr, expr: ast.Expression) -> tuple[Expr, Expr]:
    """Both sides in one dtype; a literal takes its neighbour's.  Raises DefinitionError where they differ."""
    if left.dtype == WEAK and right.dtype != WEAK:
        left = settle(left, right.dtype)
    elif right.dtype == WEAK and left.dtype != WEAK:
        right = settle(right, left.dtype)
    if left.dtype != right.dtype:
        raise DefinitionError(f"{expr.span}: operands of {left.dtype} and {right.dtype}")
    return left, right


def settle(expr: Expr, dtype: str) -> Expr:
    """Give the literals of an untyped expression a dtype; a typed one is left alone."""
    match expr:
        case Const(value=value, dtype="number"):
            integral = _is_integral(dtype)
            if integral and not (math.isfinite(value) and value == int(value) and _low(dtype) <= value <= _high(dtype)):
                raise DefinitionError(f"{value} is no {dtype}")
            return Const(bool(value) if dtype == "bool" else int(value) if integral else float(value), dtype)
        case FromIndex(index=index, dtype="number"):
            return FromIndex(index, dtype)
        case Apply(function=function, arguments=arguments, dtype="number"):
            return Apply(function, tuple(settle(a, dtype) for a in arguments), dtype)
        case Reduce(kind=kind, variables=variables, body=body, dtype="number"):
            return Reduce(kind, variables, settle(body, dtype), dtype)
        case _ if expr.dtype == WEAK:
            return select(expr.condition, settle(expr.then, dtype), settle(expr.otherwise, dtype))  # type: ignore[union-attr]
        case _:
            return expr


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def compared(operator: str, left: Expr, right: Expr) -> tuple[str, Expr, Expr] | bool | None:
    """A comparison of integers with a literal, as exact as on paper: `x < -4` never holds for unsigned numbers.

    Returns:
        the comparison with a literal of the integers' dtype, what it always is, or None for any other comparison.
    """
    if isinstance(left, Const) and left.dtype == WEAK:
        operator, left, right = _MIRRORED[operator], right, left
    if not (isinstance(right, Const) and right.dtype == WEAK and _is_integral(left.dtype)):
        return None
    value, low, high = right.value, _low(left.dtype), _high(left.dtype)
    if math.isnan(value):
        return operator == "!="
    if operator in ("==", "!="):
        if low <= value <= high and value == int(value):
            return operator, left, Const(int(value), left.dtype)
        return operator == "!="
    if not low <= value <= high:
        return (value > high) == (operator in ("<", "<="))
    nearest = math.ceil(value) if operator in ("<", ">=") else math.floor(value)
    return operator, left, Const(nearest, left.dtype)


def _is_integral(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def _low(dtype: str) -> int:
    return 0 if dtype.startswith("u") else -(1 << (_bits(dtype) - 1))


def _high(dtype: str) -> int:
    return (1 << (_bits(dtype) - (not dtype.startswith("u")))) - 1


def _bits(dtype: str) -> int:
    return int(dtype.removeprefix("u").removeprefix("int"))
