"""Functions of lists whose elements may be unknown; what they cannot tell is None."""

from __future__ import annotations

import math
from collections.abc import Callable

from smartmem_rules.analysis.types.environment import Environment, Unproven
from smartmem_rules.analysis.types.shapes import Atom, Dim, Rest, Shape, add, dim, scale
from smartmem_rules.tensor.builtins import FUNCTIONS, DefinitionError, Unsupported, Value

Symbolic = Dim | Shape | Atom | str | float | bool | None
"""An integer, a list of integers, an unknown of any kind, or what is the same for all operands."""


def as_shape(value: Symbolic) -> Shape:
    """A value as a list. Raises Unproven where it is none."""
    if isinstance(value, Shape):
        return value
    if isinstance(value, Atom):
        return Shape((Rest(value),))
    raise Unproven


def rank(shape: Shape) -> Symbolic:
    known = sum(isinstance(segment, Dim) for segment in shape.segments)
    rest = [segment for segment in shape.segments if not isinstance(segment, Dim)]
    total = Dim(known)
    for segment in rest:
        total = add(total, dim(Atom("rank", (Shape((segment,)),), f"rank({segment})")))
    return total


def axis(items: Symbolic, place: Symbolic) -> Symbolic:
    """An element of a list, None where it is not known which."""
    if not isinstance(items, Shape) or not isinstance(place, Dim) or not place.is_constant:
        return None
    position, segments = place.constant, items.segments
    if not -len(segments) <= position < len(segments):
        return None
    between = segments[: position + 1] if position >= 0 else segments[position:]
    found = segments[position]
    return found if isinstance(found, Dim) and all(isinstance(one, Dim) for one in between) else None


def computed(function: str, arguments: list[Symbolic]) -> Symbolic:
    """A builtin function of values that do not depend on operands, None where there are others."""
    plain: list[Value] = []
    for argument in arguments:
        if isinstance(argument, Dim) and argument.is_constant:
            plain.append(argument.constant)
        elif isinstance(argument, Shape):
            dims = argument.dims
            if dims is None or not all(one.is_constant for one in dims):
                return None
            plain.append(tuple(one.constant for one in dims))
        elif isinstance(argument, str | bool | float) or argument is None:
            plain.append(argument)
        else:
            return None
    if function not in FUNCTIONS:
        return None
    try:
        return _symbolic(FUNCTIONS[function](*plain))
    except (DefinitionError, Unsupported, ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _symbolic(value: Value) -> Symbolic:
    if isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return Dim(value)
    if isinstance(value, tuple) and all(isinstance(one, int) for one in value):
        return Shape(tuple(Dim(one) for one in value if isinstance(one, int)))
    return None


# --- functions of lists whose elements may be unknown ---


def _broadcast(environment: Environment, arguments: list[Symbolic]) -> Symbolic:
    return environment.broadcast([as_shape(argument) for argument in arguments])


def _concat(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    return Shape(tuple(segment for argument in arguments for segment in as_shape(argument).segments))


def _length(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    return rank(arguments[0]) if isinstance(arguments[0], Shape) else None


def product(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    items = arguments[0]
    if not isinstance(items, Shape) or items.dims is None:
        return None
    unknown = [one for one in items.dims if not one.is_constant]
    factor = math.prod(one.constant for one in items.dims if one.is_constant)
    if not unknown:
        return Dim(factor)
    if len(unknown) == 1:
        return scale(unknown[0], factor)
    return scale(dim(Atom("prod", tuple(sorted(unknown, key=repr)), " * ".join(map(str, unknown)))), factor)


def _positions(items: Symbolic, axes: Symbolic) -> tuple[list[Dim], list[int]] | None:
    if not isinstance(items, Shape) or items.dims is None or not isinstance(axes, Shape) or axes.dims is None:
        return None
    places = [axis.constant for axis in axes.dims if axis.is_constant]
    size = len(items.dims)
    if len(places) != len(axes.dims) or any(not -size <= place < size for place in places):
        return None
    return list(items.dims), places


def _take(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    found = _positions(arguments[0], arguments[1])
    return None if found is None else Shape(tuple(found[0][place] for place in found[1]))


def _drop(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    found = _positions(arguments[0], arguments[1])
    return None if found is None else Shape(tuple(one for n, one in enumerate(found[0]) if n not in found[1]))


def _unpermute(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    found = _positions(arguments[0], arguments[1])
    if found is None or sorted(found[1]) != list(range(len(found[0]))):
        return None
    return Shape(tuple(found[0][found[1].index(axis)] for axis in range(len(found[0]))))


def _put(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    found, values = _positions(arguments[0], arguments[1]), arguments[2]
    if found is None or not isinstance(values, Shape) or values.dims is None or len(values.dims) != len(found[1]):
        return None
    for place, value in zip(found[1], values.dims, strict=True):
        found[0][place] = value
    return Shape(tuple(found[0]))


def _reverse(_: Environment, arguments: list[Symbolic]) -> Symbolic:
    items = arguments[0]
    return Shape(items.segments[::-1]) if isinstance(items, Shape) and items.dims is not None else None


LISTS: dict[str, Callable[[Environment, list[Symbolic]], Symbolic]] = {
    "broadcast": _broadcast,
    "concat": _concat,
    "rank": _length,
    "prod": product,
    "take": _take,
    "permute": _take,
    "drop": _drop,
    "unpermute": _unpermute,
    "put": _put,
    "reverse": _reverse,
}
