"""Draws the elements of constants of which guards speak: orders, masks, triangles, and what is none of them."""

from __future__ import annotations

import math
import random
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from smartmem_rules.guards.constant_elements import at_each_place, tensors_of, values_at_each_place
from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import Array, storage_dtype
from smartmem_rules.verification.instances.case import representable
from smartmem_rules.verification.instances.roles import nodes

_NUMBERS = (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -0.5)
_AS_ASKED = 0.6
"""The share of draws that go by the guards."""
_SLIGHT = 0.3
"""The share of draws in which one element is another one."""


@dataclass(frozen=True)
class Asked:
    """What the guards of a rule say about the elements of one constant.

    Attributes:
        others: the elements of constants that are drawn already.
    """

    name: str
    others: Mapping[str, Array]
    guards: Sequence[ast.Expression]
    scope: Scope
    literals: Sequence[float]


def draw_elements(type_: TensorType, asked: Asked, source: random.Random) -> tuple[float, ...]:
    """Elements of a constant, row-major: exact in every arithmetic unless the rule names others."""
    named = [float(v) for v in asked.literals if representable(v, type_.dtype)]
    numbers = [v for v in (*_NUMBERS, *named) if representable(v, type_.dtype)]
    if source.random() < _AS_ASKED:
        found = _as_asked(type_, asked, numbers, source)
        if found is not None:
            return found
    array = source.choice(_KINDS)(type_.shape, numbers, source)
    flat = [v if representable(v, type_.dtype) else abs(math.floor(v)) % 2 for v in array.reshape(-1).tolist()]
    if flat and source.random() < _SLIGHT:
        flat[source.randrange(len(flat))] = source.choice(numbers)
    return tuple(map(float, flat))


def _as_asked(
    type_: TensorType, asked: Asked, numbers: Sequence[float], source: random.Random
) -> tuple[float, ...] | None:
    """Elements each of which alone is what the guards ask of its place; None where no number is."""
    counting = [float(n) for n in range(max(type_.shape, default=0)) if representable(n, type_.dtype)]
    candidates = list(dict.fromkeys((*numbers, *counting)))
    loops = [loop for guard in asked.guards for loop in _loops(guard, asked.name, asked.others)]
    if not loops:
        return None
    tries = [np.full(type_.elements, number) for number in candidates]
    tries += [array for loop in loops if (array := _solved(loop, asked)) is not None and array.size == type_.elements]
    fits = np.ones((len(tries), type_.elements), bool)
    for row, numbers_tried in enumerate(tries):
        with np.errstate(over="ignore"):
            array = numbers_tried.reshape(type_.shape).astype(storage_dtype(type_.dtype))
        for loop in loops:
            holds = at_each_place(loop, asked.scope, {**asked.others, asked.name: array})
            if holds is None:
                return None
            if holds.size == type_.elements:
                fits[row] &= holds
    if not fits.any(0).all():
        return None
    rows = [source.choice(np.flatnonzero(column).tolist()) for column in fits.T]
    return tuple(float(tries[row][place]) for place, row in enumerate(rows))


def _loops(guard: ast.Expression, name: str, others: Container[str]) -> Iterator[ast.Reduction]:
    """The loops over one tensor, and others that are known, that a guard wants to hold."""
    if isinstance(guard, ast.Binary) and guard.operator == "and":
        yield from _loops(guard.left, name, others)
        yield from _loops(guard.right, name, others)
    elif isinstance(guard, ast.Reduction):
        read = {read for read, _ in tensors_of(guard)}
        if name in read and all(one == name or one in others for one in read):
            yield guard


def solved_elements(type_: TensorType, asked: Asked) -> tuple[float, ...] | None:
    """The elements of a constant that an equation of the guards says, row-major; None where none does."""
    for guard in asked.guards:
        for loop in _loops(guard, asked.name, asked.others):
            solved = _solved(loop, asked)
            if solved is not None and solved.size == type_.elements:
                return tuple(solved.tolist())
    return None


def _solved(loop: ast.Reduction, asked: Asked) -> Array | None:
    """The elements that a loop's equation says; None where it has none, or the rest of it is not known."""
    found = equation_of(loop)
    if found is None or found[0] != asked.name:
        return None
    solved = values_at_each_place(replace(loop, kind="sum", body=found[1]), asked.scope, asked.others)
    return None if solved is None else solved.astype(np.float64)


def equation_of(loop: ast.Reduction) -> tuple[str, ast.Expression] | None:
    """The tensor whose elements the body of a loop equals to an expression, or holds near to it, and the expression."""
    match loop.body:
        case ast.Binary(operator="==", left=ast.Subscript(base=ast.Name(id=name)), right=value):
            return name, value
        case ast.Binary(
            operator="<" | "<=",
            left=ast.Call(
                function="abs",
                arguments=(ast.Binary(operator="-", left=ast.Subscript(base=ast.Name(id=name)), right=value),),
            ),
        ):
            return name, value
    return None


def in_order(names: Iterable[str], guards: Iterable[ast.Expression]) -> list[str]:
    """Constants by name; those that an equation makes of others behind all of them."""
    loops = [node for guard in guards for node in nodes(guard) if isinstance(node, ast.Reduction)]
    found = [one for loop in loops if (one := equation_of(loop)) is not None]
    made = {name for name, value in found if any(isinstance(node, ast.Subscript) for node in nodes(value))}
    return sorted(names, key=lambda name: (name in made, name))


def _any(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    count = math.prod(shape)
    return np.array([source.choice(numbers) for _ in range(count)], np.float64).reshape(shape)


def _not_negative(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    return np.abs(_any(shape, numbers, source))


def _positive(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    return _not_negative(shape, numbers, source) + 1


def _one_number(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    return np.full(shape, source.choice(numbers))


def _two_numbers(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    return _any(shape, source.sample(list(numbers), 2), source)


def _counting(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    step, start = source.choice((1.0, 1.0, 1.0, -1.0, 2.0)), source.choice((0.0, 0.0, 0.0, 1.0))
    if shape and source.random() < 0.5:
        return np.broadcast_to(start + step * np.arange(shape[-1]), shape)
    return (start + step * np.arange(math.prod(shape))).reshape(shape)


def _sorted(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    return np.sort(_any(shape, numbers, source), axis=-1) if shape else _any(shape, numbers, source)


def _permutation(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    places = list(range(math.prod(shape)))
    source.shuffle(places)
    return np.array(places, np.float64).reshape(shape)


def _triangle(shape: tuple[int, ...], numbers: Sequence[float], source: random.Random) -> Array:
    if len(shape) < 2:
        return _not_negative(shape, numbers, source)
    rows, columns = np.indices(shape)[-2:]
    below = source.choice((columns <= rows, columns < rows, columns >= rows, columns == rows))
    inside = _any(shape, numbers, source) if source.random() < 0.5 else _one_number(shape, numbers, source)
    outside = source.choice((0.0, 0.0, *numbers))
    made = np.where(below, inside, outside)
    return np.where(columns == rows, 1.0, made) if source.random() < 0.3 else made


_KINDS = (
    *(_any, _not_negative, _not_negative, _positive, _one_number, _two_numbers),
    *(_counting, _counting, _sorted, _permutation, _triangle, _triangle, _triangle),
)
