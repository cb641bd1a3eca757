"""The values of a kernel's variables: integers over work-items and loops, and what is unknown without running it.

An integer is a Python int or an array whose first axis runs over work-items and whose further axes run over the loops
around it, outermost first; axes along which it does not change have extent 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from smartmem_rules.records import dataclass

Number: TypeAlias = "int | np.ndarray[Any, Any]"


class Unknown:
    """A value that memory decides: no address depends on it, or it is held inside an extent first."""

    __slots__ = ()


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Loaded(Unknown):
    """An integer read from memory; `known` where it is a constant of the model.

    Attributes:
        place: the address it was read from, which decides a stand-in for the value.
    """

    place: Number
    known: Number | None


@dataclass(frozen=True, kw_only=True)
class Space:
    """What a pointer points into.

    Attributes:
        kind: global | private | local | table.
        name: the parameter or variable.
        item_bytes: of one element.
        elements: of a private or local array.
        values: of a table of constants.
    """

    kind: str
    name: str
    item_bytes: int
    elements: int = 0
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pointer:
    """An element of a space; `width` elements are read or written through it at once."""

    space: Space
    offset: Number
    width: int = 1
    indexed: bool = False


@dataclass(frozen=True)
class Vector:
    """A vector of integers (image coordinates)."""

    items: tuple[Number | Unknown, ...]


Value: TypeAlias = "Number | Unknown | Pointer | Vector"


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is known."""
    return isinstance(value, (int, np.ndarray))


def aligned(*values: Number) -> list[Number]:
    """Arrays with the same number of axes: those of inner loops are appended."""
    depth = max((v.ndim for v in values if isinstance(v, np.ndarray)), default=0)
    return [v.reshape(v.shape + (1,) * (depth - v.ndim)) if isinstance(v, np.ndarray) else v for v in values]


def _divided(a: Any, b: Any) -> Any:
    quotient = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where((np.asarray(a) < 0) != (np.asarray(b) < 0), -quotient, quotient)


def divide(a: Any, b: Any) -> Any:
    """C's division: towards zero."""
    if isinstance(b, int) and b > 0 and np.min(a) >= 0:
        return a // b
    return _divided(a, b)


def remainder(a: Any, b: Any) -> Any:
    """C's rest: of the sign of the dividend."""
    if isinstance(b, int) and b > 0 and np.min(a) >= 0:
        return a % b
    return a - _divided(a, b) * b


def _flag(value: Any) -> Any:
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "<": lambda a, b: _flag(a < b),
    ">": lambda a, b: _flag(a > b),
    "<=": lambda a, b: _flag(a <= b),
    ">=": lambda a, b: _flag(a >= b),
    "==": lambda a, b: _flag(a == b),
    "!=": lambda a, b: _flag(a != b),
    "&&": lambda a, b: _flag(np.logical_and(a, b)),
    "||": lambda a, b: _flag(np.logical_or(a, b)),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def binary(operator: str, a: Value, b: Value) -> Value:
    """`a operator b`; pointers move by elements, what depends on memory is unknown."""
    if isinstance(a, Pointer) and is_number(b) and operator in "+-":
        return moved(a, b if operator == "+" else binary("*", b, -1))
    if isinstance(b, Pointer) and is_number(a) and operator == "+":
        return moved(b, a)
    if not (is_number(a) and is_number(b)):
        return UNKNOWN
    left, right = aligned(a, b)
    result: Number = OPERATORS[operator](left, right)
    return result


def moved(pointer: Pointer, elements: Value) -> Pointer:
    """The pointer some elements on."""
    offset = binary("+", pointer.offset, elements)
    constant = isinstance(elements, int)
    return Pointer(pointer.space, offset, pointer.width, pointer.indexed or not constant)  # type: ignore[arg-type]


def limited(name: str, arguments: list[Value]) -> Value:
    """min, max and clamp of integers."""
    if not all(is_number(a) for a in arguments):
        return UNKNOWN
    numbers = aligned(*arguments)  # type: ignore[arg-type]
    if all(isinstance(n, int) for n in numbers):
        whole = [n for n in numbers if isinstance(n, int)]
        if name == "clamp":
            return min(max(whole[0], whole[1]), whole[2])
        return min(whole) if name == "min" else max(whole)
    if name == "clamp":
        return np.clip(numbers[0], numbers[1], numbers[2])
    return (np.minimum if name == "min" else np.maximum)(numbers[0], numbers[1])


def held(value: Value, extent: int, wrap: bool) -> Value:
    """An index that comes from memory, inside its axis: the constant's value, or an even spread over the axis."""
    if isinstance(value, Loaded):
        if value.known is None:
            # a multiplicative hash of the place: the same element always has the same stand-in
            place = np.asarray(value.place, dtype=np.uint64) if np.ndim(value.place) else np.uint64(value.place)
            with np.errstate(over="ignore"):
                mixed = (place * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
            spread = (mixed % np.uint64(max(extent, 1))).astype(np.int64)
            return spread if isinstance(spread, np.ndarray) else int(spread)
        value = value.known
    if not is_number(value):
        return UNKNOWN
    if wrap:
        value = np.where(np.asarray(value) < 0, np.asarray(value) + extent, value)
    return np.clip(value, 0, max(extent - 1, 0))
