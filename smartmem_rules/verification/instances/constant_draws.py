"""Draws the elements of constants of which guards speak: orders, masks, triangles, and what is none of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.verification.instances.case import representable
from smartmem_rules.verification.instances.element_guards import Asked, stored

_NUMBERS = (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -0.5)
_AS_ASKED = 0.6
"""The share of draws that go by the guards."""
_TRIES = 8
_SLIGHT = 0.3
"""The share of draws in which one element is another one."""


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


def fitting_elements(type_: TensorType, asked: Asked, source: random.Random) -> tuple[float, ...]:
    """Elements that what guards say of each of them admits, if some draws give such ones."""
    flat = draw_elements(type_, asked, source)
    for _ in range(_TRIES):
        if asked.holds(stored(flat, type_)):
            break
        flat = draw_elements(type_, asked, source)
    return flat


def _as_asked(
    type_: TensorType, asked: Asked, numbers: Sequence[float], source: random.Random
) -> tuple[float, ...] | None:
    """Elements each of which alone is what the guards ask of its place; None where no number is."""
    counting = [float(n) for n in range(max(type_.shape, default=0)) if representable(n, type_.dtype)]
    candidates = list(dict.fromkeys((*numbers, *counting)))
    if not asked.loops:
        return None
    tries = [np.full(type_.elements, number) for number in candidates]
    tries += [
        array for loop in asked.loops if (array := asked.right_of(loop)) is not None and array.size == type_.elements
    ]
    fits = np.ones((len(tries), type_.elements), bool)
    arrays = np.stack([stored(numbers_tried, type_) for numbers_tried in tries])
    for loop in asked.loops:
        holds = asked.at_each_place_of_all(loop, arrays)
        if holds is None:
            return None
        if holds.shape == fits.shape:
            fits &= holds
    if not fits.any(0).all():
        return None
    rows = [source.choice(np.flatnonzero(column).tolist()) for column in fits.T]
    return tuple(float(tries[row][place]) for place, row in enumerate(rows))


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
