"""Double precision at generic points: numbers that agree in ten digits are one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smartmem_rules.tensor import primitives
from smartmem_rules.verification.semantics.domains import Array, Domain, Value, is_float

SAME = 1e-10
"""By how much two numbers that are one differ through rounding, of the larger one; drawn numbers differ by more."""


class Generic(Domain):
    """Floats in double precision whose comparisons are those of the real numbers.

    At elements drawn at random two numbers are equal because both sides say so, or far apart. What is decided here can
    differ between the sides by rounding alone only where their numbers are apart by about `SAME`.
    """

    name = "float64 at generic points"

    def constant(self, value: float | int | bool, dtype: str) -> Value:
        """A scalar."""
        return (np.asarray(value, np.float64),) if is_float(dtype) else super().constant(value, dtype)

    def cast(self, value: Value, source: str, target: str) -> Value:
        """Between floats nothing changes; what is nearly an integer is one."""
        if is_float(target):
            return value if is_float(source) else (np.asarray(value[0], np.float64),)
        if is_float(source):
            return super().cast((_whole(value[0]),), "float64", target)
        return super().cast(value, source, target)

    def apply(self, function: str, arguments: tuple[Value, ...], dtype: str) -> Value:
        """A primitive of double precision."""
        values = [np.asarray(a[0]) for a in arguments]
        if not any(v.dtype.kind == "f" for v in values):
            return super().apply(function, arguments, dtype)
        if function == "fma":
            return (np.asarray(values[0] * values[1] + values[2]),)
        if function in _TESTS and len(values) == 2:
            one, other = values
            return (_TESTS[function](one, other, _alike(one, other)),)
        if function in ("floor", "ceil", "round", "sign"):
            values = [_whole(v) for v in values]
        return (np.asarray(primitives.PRIMITIVES[function](*values)),)

    def reduce(self, kind: str, value: Value, kept: int, dtype: str) -> Value:
        """All axes from `kept` on."""
        return (primitives.reduce(kind, value[0], kept, "float64" if is_float(dtype) else dtype),)


def _alike(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | (np.abs(a - b) <= SAME * np.maximum(np.abs(a), np.abs(b))))


def _whole(values: Array) -> Array:
    nearest = np.rint(values)
    return np.asarray(np.where(np.abs(values - nearest) <= SAME * np.maximum(1.0, np.abs(values)), nearest, values))


_TESTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "eq": lambda a, b, alike: alike,
    "ne": lambda a, b, alike: ~alike,
    "lt": lambda a, b, alike: (a < b) & ~alike,
    "le": lambda a, b, alike: (a < b) | alike,
    "gt": lambda a, b, alike: (a > b) & ~alike,
    "ge": lambda a, b, alike: (a > b) | alike,
}
