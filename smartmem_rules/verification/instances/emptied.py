"""Instances in which a tensor has no elements: an extent is 0, or a list of numbers cuts nothing out of a tensor."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from smartmem_rules.verification.instances.case import EMPTY, Case, Choices

_PAIRS = 12
_LISTS = 6
"""How many changes of two axes, and of lists of numbers, are made of one instance."""

Numbers = tuple[int, ...]


def without_elements(case: Case, source: random.Random) -> list[Choices]:
    """The choices of a case with some extent of 0, or with lists of numbers that may be an empty range, in no order."""
    # constants of other shapes have other elements
    plain = {slot: value for slot, value in case.choices.items() if not slot.startswith("elements:")}
    shapes: dict[str, Numbers] = {slot: value for slot, value in plain.items() if slot.startswith("shape:")}
    lists: dict[str, Numbers] = {
        slot: value for slot, value in plain.items() if slot.startswith("name:") and _is_whole(value)
    }
    changes = [
        *_of_one_extent(shapes, lists), *_of_one_axis(shapes), *_of_two_axes(shapes, source), *_ranges(lists, source),
    ]  # fmt: skip
    source.shuffle(changes)
    return [{**plain, **change, "alike": 0, EMPTY: True} for change in changes]


def _of_one_extent(shapes: dict[str, Numbers], lists: dict[str, Numbers]) -> Iterator[Choices]:
    """All axes of one length, also with the same number of a list, such as one of a new shape."""
    for extent in dict.fromkeys(n for shape in shapes.values() for n in shape):
        every = {slot: _emptied(shape, extent) for slot, shape in shapes.items() if extent in shape}
        yield every
        numbers = {slot: _emptied(value, extent) for slot, value in lists.items() if extent in value}
        if numbers:
            yield {**every, **numbers}


def _of_one_axis(shapes: dict[str, Numbers]) -> Iterator[Choices]:
    for slot, shape in shapes.items():
        for axis in range(len(shape)):
            yield {slot: _without(shape, axis)}


def _of_two_axes(shapes: dict[str, Numbers], source: random.Random) -> list[Choices]:
    """An axis of each of two operands that is as long in both: where all axes are, no other change finds these."""
    found: list[Choices] = [
        {one: _without(first, i), other: _without(second, j)}
        for (one, first), (other, second) in itertools.combinations(shapes.items(), 2)
        for i, j in itertools.product(range(len(first)), range(len(second)))
        if first[i] == second[j]
    ]
    return source.sample(found, min(len(found), _PAIRS))


def _ranges(lists: dict[str, Numbers], source: random.Random) -> Iterator[Choices]:
    """Some lists that are another one, or zeros: of equal beginnings and ends nothing lies between."""
    for _ in range(_LISTS if lists else 0):
        like = source.choice(sorted(lists.values()))
        value = source.choice((like, like, (0,) * len(like)))
        slots = sorted(slot for slot, other in lists.items() if len(other) == len(value))
        yield dict.fromkeys(source.sample(slots, min(len(slots), source.choice((1, 1, 2)))), value)


def _is_whole(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(n) is int for n in value)


def _emptied(numbers: Numbers, extent: int) -> Numbers:
    return tuple(0 if n == extent else n for n in numbers)


def _without(shape: Numbers, axis: int) -> Numbers:
    return (*shape[:axis], 0, *shape[axis + 1 :])
