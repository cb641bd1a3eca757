"""Double precision in which each number carries a bound of its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from smartmem_rules.tensor import primitives
from smartmem_rules.verification.semantics.domains import Array, Domain, Ties, Value, is_float

UNIT = 2.0**-52
SAFETY = 4.0
"""By how much a difference may exceed the error bounds, which are of first order."""
PRECISION = 2.0**-23
"""How exactly a number is meant that a guard names with `near`: as a float of single precision holds it."""


class Bounded(Domain):
    """Floats in double precision, each with a bound of its error: what rounding and `near` may have done to it.

    The bound of a function is what it does to the interval's ends: a condition number without derivatives.
    """

    name = "float64 with error bounds"

    def __init__(self, inexact: tuple[float, ...] = ()) -> None:
        """Args:
        inexact: numbers that a guard compares with `near`: they are meant in single precision.
        """
        self.inexact = inexact

    def slack(self, values: Array) -> Array:
        """The error with which given numbers come in."""
        error = np.zeros(np.shape(values))
        for number in self.inexact:
            reach = PRECISION * abs(number)
            close = (values == number) | (np.isfinite(number) & (np.abs(values - number) <= reach))
            error = np.where(close, reach, error)
        return np.asarray(error)

    def constant(self, value: float | int | bool, dtype: str) -> Value:
        """A scalar."""
        if not is_float(dtype):
            return super().constant(value, dtype)
        array = np.asarray(value, np.float64)
        return array, self.slack(array)

    def cast(self, value: Value, source: str, target: str) -> Value:
        """Between floats nothing changes."""
        if is_float(target):
            if is_float(source):
                return value
            array = np.asarray(value[0], np.float64)
            return array, np.zeros(array.shape) if len(value) == 1 else np.asarray(value[1])
        found = super().cast(value, source, target)
        return found if len(value) == 1 else _doubted(found[0], self._ends(value, source, target, found[0]))

    def _ends(self, value: Value, source: str, target: str, found: Array) -> Array:
        """Where an integer would be another one within the number's error."""
        if not is_float(source):
            return np.asarray(value[1] > 0)
        with np.errstate(all="ignore"):
            ends = (np.asarray(value[0] + sign * SAFETY * value[1]) for sign in (1, -1))
            other = [super(Bounded, self).cast((end,), source, target)[0] != found for end in ends]
        return np.asarray(other[0] | other[1])

    def apply(self, function: str, arguments: tuple[Value, ...], dtype: str) -> Value:
        """A primitive of double precision."""
        if not any(len(a) == 2 for a in arguments):
            return super().apply(function, arguments, dtype)
        if dtype != "bool" and not is_float(dtype):
            found = super().apply(function, tuple((a[0],) for a in arguments), dtype)[0]
            return _doubted(found, np.logical_or.reduce([a[1] > 0 for a in arguments if len(a) == 2]))
        if function == "fma":
            return self.apply("add", (self.apply("mul", arguments[:2], dtype), arguments[2]), dtype)
        if function == "select":
            condition, then, otherwise = arguments[0][0], arguments[1], arguments[2]
            doubt = arguments[0][1] if len(arguments[0]) == 2 else False
            value = np.where(condition, then[0], otherwise[0])
            error = np.where(condition, *(a[1] if len(a) == 2 else 0.0 for a in (then, otherwise)))
            return value, np.where(doubt, np.inf, error) if np.any(doubt) else error
        operation = _TIES[self.ties] if function == "round" else primitives.PRIMITIVES[function]
        values = [a[0] for a in arguments]
        errors = [a[1] if len(a) == 2 else np.zeros(np.shape(a[0])) for a in arguments]
        if dtype == "bool":
            return self._test(function, values, errors)
        result = np.asarray(operation(*values), np.float64)
        spread = _spread(function, values, errors, result)
        return result, np.asarray(spread + _rounding(function, values, result))

    def _test(self, function: str, values: list[Array], errors: list[Array]) -> Value:
        result = np.asarray(primitives.PRIMITIVES[function](*values))
        if values[0].dtype.kind == "b":
            return result, np.asarray(np.broadcast_to(np.maximum.reduce(np.broadcast_arrays(*errors)), result.shape))
        if len(values) == 2 and values[0].dtype.kind == "f":
            close = np.abs(values[0] - values[1]) <= errors[0] + errors[1]
            doubt = close & (errors[0] + errors[1] > 0)
            return (result, np.where(doubt, np.inf, 0.0)) if np.any(doubt) else (result,)
        return (result,)

    def reduce(self, kind: str, value: Value, kept: int, dtype: str) -> Value:
        """Sums with the bound of any order of summation."""
        if len(value) == 1:
            return super().reduce(kind, value, kept, dtype)
        axes = tuple(range(kept, value[0].ndim))
        if value[0].dtype.kind != "f":
            return _doubted(super().reduce(kind, value[:1], kept, dtype)[0], np.any(value[1] > 0, axis=axes))
        result = primitives.reduce(kind, value[0], kept, "float64")
        count = math.prod(value[0].shape[kept:])
        if kind == "sum":
            magnitude = np.sum(np.abs(value[0]), axis=axes)
            return result, np.sum(value[1], axis=axes) + count * UNIT * magnitude
        if kind == "prod":
            high = np.prod(np.abs(value[0]) + value[1], axis=axes)
            return result, np.asarray(high - np.abs(result) + count * UNIT * high)
        return result, np.max(value[1], axis=axes, initial=0.0)


def _doubted(found: Array, doubtful: Array) -> Value:
    """Integers or truth values, with an infinite error where rounding decides them."""
    if not np.any(doubtful):
        return (found,)
    return found, np.where(np.broadcast_to(doubtful, found.shape), np.inf, 0.0)


_UNROUNDED = frozenset({"neg", "abs", "min", "max", "floor", "ceil", "round", "sign"})
_ARITHMETIC: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def _rounding(function: str, values: list[Array], result: Array) -> Any:
    """A bound of what rounding does to a result; 0 where it is exact, so that an even exponent stays one."""
    if function in _UNROUNDED:
        return 0.0
    bound = 4 * UNIT * np.abs(result)
    if function not in _ARITHMETIC:
        return bound
    wider = _ARITHMETIC[function](*(np.asarray(v, np.longdouble) for v in values))
    return np.where(wider == result, 0.0, bound)


_TIES: dict[Ties, Callable[..., Any]] = {
    "even": np.rint,
    "up": lambda a: np.floor(a + 0.5),
    "down": lambda a: np.ceil(a - 0.5),
}
_LINEAR = frozenset({"add", "sub", "min", "max"})
_SPARED = frozenset({"neg", "abs"})


def _spread(function: str, values: list[Array], errors: list[Array], result: Array) -> Any:
    """How far the result moves while the arguments move within their errors."""
    if function in _LINEAR:
        return errors[0] + errors[1]
    if function in _SPARED:
        return errors[0]
    if function == "mul":
        return np.abs(values[0]) * errors[1] + np.abs(values[1]) * errors[0] + errors[0] * errors[1]
    operation = primitives.PRIMITIVES[function]
    total: Any = 0.0
    for place, error in enumerate(errors):
        if not np.any(error):
            continue
        for sign in (1, -1):
            moved = [v + sign * error if i == place else v for i, v in enumerate(values)]
            away = np.abs(np.asarray(operation(*moved), np.float64) - result)
            total = np.maximum(total, away) if place == 0 else total + away
    return np.where(np.isnan(total), np.inf, total)
