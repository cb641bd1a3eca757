"""The arithmetics in which both sides of a rule are computed.

A value is a tuple of numpy arrays of one shape, its components.  Floats are computed in the domain; integers and truth
values are what they are in every domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from smartmem_rules.tensor import primitives
from smartmem_rules.tensor.binding import FLOATS

Array = np.ndarray[Any, np.dtype[Any]]
Value = tuple[Array, ...]
Ties = Literal["even", "up", "down"]

FIELD = frozenset(["add", "sub", "mul", "neg", "div", "recip", "cast", "sum", "prod", "square", "float"])
ORDERED = FIELD | frozenset({
    "min", "max", "abs", "sign", "floor", "ceil", "round", "select", "pow", "fma",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "any", "all",
})  # fmt: skip


_EXTREMES = frozenset(["max", "min"])
"""Where zeros of both signs are compared, 0.0 is the greater one: numpy and devices give either."""


class Undefined(Exception):
    """The values lie outside of what an operation is defined for: others are drawn."""


class ReadsOutside(Undefined):
    """What an integer tensor decides lies outside of the tensor that is read."""


class Domain:
    """Plain numpy at the declared dtypes: what a device computes, up to the order of sums."""

    name = "native"
    largest = 400_000
    """Points that one step may compute; larger instances are left to other trials."""
    ties: Ties = "even"
    """Which integer a number half-way between two is rounded to."""

    def rounding(self, ties: Ties) -> Domain:
        """The same arithmetic with other ties."""
        other = copy(self)
        other.ties = ties
        return other

    def constant(self, value: float | int | bool, dtype: str) -> Value:
        """A scalar."""
        return (np.asarray(primitives.constant(value, dtype)),)

    def cast(self, value: Value, source: str, target: str) -> Value:
        """A conversion of element types."""
        return (np.asarray(primitives.cast(value[0], target)),)

    def bitcast(self, value: Value, source: str, target: str) -> Value:
        """The bits of an element as another type."""
        if type(self) is not Domain and (is_float(source) or is_float(target)):
            raise Undefined("the bits of a number")
        return (np.asarray(primitives.bitcast(value[0], source, target)),)

    def apply(self, function: str, arguments: tuple[Value, ...], dtype: str) -> Value:
        """An elementwise primitive."""
        result = primitives.apply(function, tuple(a[0] for a in arguments), dtype)
        if function in _EXTREMES and result.dtype.kind == "f":
            one, other = (np.asarray(a[0]) for a in arguments)
            zeros = one + other if function == "max" else -(-one + -other)
            result = np.where((one == 0) & (other == 0), zeros, result).astype(result.dtype)
        return (result,)

    def reduce(self, kind: str, value: Value, kept: int, dtype: str) -> Value:
        """All axes from `kept` on."""
        result = primitives.reduce(kind, value[0], kept, dtype)
        if kind in _EXTREMES and result.dtype.kind == "f":
            first = (value[0] == 0) & (np.signbit(value[0]) == (kind == "min"))
            some = np.any(first, axis=tuple(range(kept, value[0].ndim)))
            zero = np.where(some == (kind == "max"), 0.0, -0.0)
            result = np.where(result == 0, zero, result).astype(result.dtype)
        return (result,)


class Loose(Domain):
    """Plain numpy whose floats are compared up to rounding.

    What a reduction over nothing gives, an infinity too, is what it is and no number that grew too large.
    """

    name = "native, up to rounding"


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


class Rationals(Domain):
    """Floats as exact rational numbers (Python integers and fractions)."""

    name = "rationals"
    largest = 20_000

    def constant(self, value: float | int | bool | Fraction, dtype: str) -> Value:
        """A scalar; a float is the binary fraction that it is."""
        if not is_float(dtype):
            return super().constant(int(value) if isinstance(value, Fraction) else value, dtype)
        return (_boxed(exact(value)),)

    def cast(self, value: Value, source: str, target: str) -> Value:
        """Between floats nothing changes; integers become exact."""
        if is_float(target):
            if is_float(source):
                return value
            whole = np.asarray(value[0])
            return ((whole.view(np.uint8) if whole.dtype == bool else whole).astype(object),)
        if is_float(source):
            if target == "bool":
                return (np.asarray(value[0] != 0).astype(bool),)
            try:
                return (np.vectorize(int, otypes=[object])(value[0]).astype(np.dtype(target)),)
            except (OverflowError, ValueError) as error:
                raise Undefined(f"a number that is no {target}") from error
        return super().cast(value, source, target)

    def apply(self, function: str, arguments: tuple[Value, ...], dtype: str) -> Value:
        """A primitive of an ordered field."""
        if function == "fma":
            return self.apply("add", (self.apply("mul", arguments[:2], dtype), arguments[2]), dtype)
        arrays = [a[0] for a in arguments]
        if not any(a.dtype == object for a in arrays):
            return super().apply(function, arguments, dtype)
        operation = _TIES[self.ties] if function == "round" else _EXACT.get(function)
        if operation is None:
            raise Undefined(function)
        try:
            result = np.asarray(operation(*arrays))
        except ZeroDivisionError as error:
            raise Undefined("division by zero") from error
        return (result.astype(bool) if dtype == "bool" else result.astype(object),)

    def reduce(self, kind: str, value: Value, kept: int, dtype: str) -> Value:
        """Exact sums and products."""
        array = value[0]
        if array.dtype != object:
            return super().reduce(kind, value, kept, dtype)
        flat = array.reshape(*array.shape[:kept], -1)
        if flat.shape[-1] == 0:
            empty: Any = {"sum": 0, "prod": 1, "max": -math.inf, "min": math.inf}[kind]
            return (np.full(flat.shape[:-1], empty, object),)
        operation: Any = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
        return (np.asarray(operation.reduce(flat, axis=-1), object),)


def exact(value: float | int | bool | Fraction) -> Any:
    """A number as an exact one; infinities stay."""
    if isinstance(value, bool | int):
        return int(value)
    if math.isinf(value) or math.isnan(value):
        return value
    fraction = Fraction(value)
    return int(fraction) if fraction.denominator == 1 else fraction


def _boxed(value: Any) -> Array:
    box: Array = np.empty((), object)
    box[()] = value
    return box


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        raise Undefined("infinite")
    return exact_quotient(a, b)


def exact_quotient(a: Any, b: Any) -> Any:
    """a / b as an integer where it is one."""
    if type(a) is int and type(b) is int:
        whole, rest = divmod(a, b)
        return Fraction(a, b) if rest else whole
    fraction = Fraction(a) / Fraction(b)
    return int(fraction) if fraction.denominator == 1 else fraction


def _power(a: Any, b: Any) -> Any:
    if b != int(b) or abs(b) > 8:
        raise Undefined("a root")
    return a ** int(b) if b >= 0 else exact_quotient(1, a ** int(-b))


def _elementwise(function: Callable[..., Any], count: int) -> Callable[..., Array]:
    lifted = np.frompyfunc(function, count, 1)
    return lambda *arrays: np.asarray(lifted(*arrays), object)


_EXACT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "select": np.where,
    "div": _elementwise(_quotient, 2),
    "recip": _elementwise(lambda a: _quotient(1, a), 1),
    "pow": _elementwise(_power, 2),
    "sign": _elementwise(lambda a: (a > 0) - (a < 0), 1),
    "floor": _elementwise(lambda a: a // 1, 1),
    "ceil": _elementwise(lambda a: -(-a // 1), 1),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


_TIES: dict[Ties, Callable[..., Any]] = {
    "even": _elementwise(round, 1),
    "up": _elementwise(lambda a: (2 * a + 1) // 2, 1),
    "down": _elementwise(lambda a: -((1 - 2 * a) // 2), 1),
}


class PrimeField(Domain):
    """Floats as elements of a prime field: polynomials and rational functions, one machine word each."""

    name = "prime field"
    prime = 2**31 - 1

    def constant(self, value: float | int | bool, dtype: str) -> Value:
        """A scalar; a float is the quotient of integers that it is."""
        if not is_float(dtype):
            return super().constant(value, dtype)
        return (np.asarray(self.residue(value), np.int64),)

    def residue(self, value: float | int) -> int:
        """The element of the field that a number stands for."""
        if isinstance(value, float) and not math.isfinite(value):
            raise Undefined("infinite")
        fraction = Fraction(value)
        return fraction.numerator * pow(fraction.denominator, -1, self.prime) % self.prime

    def cast(self, value: Value, source: str, target: str) -> Value:
        """Between floats nothing changes."""
        if is_float(target):
            return value if is_float(source) else (value[0].astype(np.int64) % self.prime,)
        if is_float(source):
            raise Undefined("a field element as an integer")
        return super().cast(value, source, target)

    def apply(self, function: str, arguments: tuple[Value, ...], dtype: str) -> Value:
        """A primitive of a field."""
        if not is_float(dtype):
            return super().apply(function, arguments, dtype)
        if function == "fma":
            return self.apply("add", (self.apply("mul", arguments[:2], dtype), arguments[2]), dtype)
        arrays = [a[0] for a in arguments]
        match function:
            case "add":
                return ((arrays[0] + arrays[1]) % self.prime,)
            case "sub":
                return ((arrays[0] - arrays[1]) % self.prime,)
            case "mul":
                return (arrays[0] * arrays[1] % self.prime,)
            case "neg":
                return (-arrays[0] % self.prime,)
            case "recip":
                return (self._inverse(arrays[0]),)
            case "div":
                return (arrays[0] * self._inverse(arrays[1]) % self.prime,)
            case "select":
                return (np.where(arrays[0], arrays[1], arrays[2]),)
        raise Undefined(function)

    def _inverse(self, values: Array) -> Array:
        if np.any(values == 0):
            raise Undefined("division by zero")
        result = np.ones_like(values)
        base, exponent = values.copy(), self.prime - 2
        while exponent:
            if exponent & 1:
                result = result * base % self.prime
            base = base * base % self.prime
            exponent >>= 1
        return np.asarray(result)

    def reduce(self, kind: str, value: Value, kept: int, dtype: str) -> Value:
        """Sums and products in the field."""
        if not is_float(dtype):
            return super().reduce(kind, value, kept, dtype)
        flat = value[0].reshape(*value[0].shape[:kept], -1)
        if kind == "sum":
            return (np.asarray(flat.sum(axis=-1)) % self.prime,)  # fewer than 2**32 terms do not overflow
        if kind != "prod":
            raise Undefined(kind)
        result = np.ones(flat.shape[:-1], np.int64)
        for place in range(flat.shape[-1]):
            result = result * flat[..., place] % self.prime
        return (result,)
