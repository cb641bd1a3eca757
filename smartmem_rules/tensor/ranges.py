"""What holds of extents for all values of their dimensions, and what they are at most and at least.

Where there are few combinations of values, bounds are exact: each is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from smartmem_rules.tensor.extents import (
    Dimension,
    Extent,
    Extreme,
    Factor,
    Quotient,
    SymbolicExtentError,
    at,
    dimensions,
    is_symbolic,
)

ENUMERATED = 1 << 16
"""Up to so many combinations of values bounds are found by looking at each; beyond, by interval arithmetic."""

Oracle = Callable[[Any, str, Any], bool]
_oracle: Oracle | None = None
_numbers = 0


@contextmanager
def answering(oracle: Oracle) -> Iterator[None]:
    """Let somebody answer the comparisons that the ranges of dimensions leave open: a proof, which looks at both."""
    global _oracle
    before, _oracle = _oracle, oracle
    try:
        yield
    finally:
        _oracle = before


@contextmanager
def counting(most: int) -> Iterator[None]:
    """Where an open extent is needed as a number, let whoever answers say which one up to some it is."""
    global _numbers
    before, _numbers = _numbers, most
    try:
        yield
    finally:
        _numbers = before


def number_of(extent: int) -> int | None:
    """The number that an extent is said to be, None where nobody says."""
    if _oracle is None or not _numbers:
        return None
    low, high = bounds(extent)
    return next((n for n in range(max(low, -_numbers), min(high, _numbers) + 1) if _oracle(extent, "==", n)), None)


def bounds(value: int) -> tuple[int, int]:
    """The least and greatest value (a bound of them, where there are too many combinations to look at)."""
    return _bounds(value) if is_symbolic(value) else (value, value)


@lru_cache(maxsize=1 << 16)
def _bounds(value: Extent) -> tuple[int, int]:
    open_ = sorted(dimensions(value), key=lambda d: d.name)
    if math.prod(d.high - d.low + 1 for d in open_) <= ENUMERATED:
        exact = object if _magnitude(value) > np.iinfo(np.int64).max else np.int64
        grids = np.meshgrid(*(np.arange(d.low, d.high + 1, dtype=exact) for d in open_), indexing="ij", sparse=True)
        values = np.asarray(at(value, {d.name: grid for d, grid in zip(open_, grids, strict=True)}))
        return int(values.min()), int(values.max())
    low = high = 0
    for monomial, coefficient in value.terms:
        ranges = [_factor_bounds(factor) for factor in monomial]
        corners = [1]
        for least, greatest in ranges:
            corners = [c * end for c in corners for end in (least, greatest)]
        low += min(coefficient * c for c in corners)
        high += max(coefficient * c for c in corners)
    return low, high


def _magnitude(value: int) -> int:
    """What no number on the way to an extent's value exceeds."""
    if not is_symbolic(value):
        return abs(value)
    sizes = [
        abs(coefficient) * math.prod(_largest_factor(factor) for factor in monomial)
        for monomial, coefficient in value.terms  # type: ignore[attr-defined]
    ]
    return sum(sizes)


def _largest_factor(factor: Factor) -> int:
    match factor:
        case Dimension(low=low, high=high):
            return max(abs(low), abs(high), 1)
        case Quotient(value=left, divisor=right) | Extreme(left=left, right=right):
            return max(_magnitude(left), _magnitude(right), 1)


def _factor_bounds(factor: Factor) -> tuple[int, int]:
    match factor:
        case Dimension(low=low, high=high):
            return low, high
        case Quotient(value=value, divisor=divisor):
            (a, b), (c, d) = bounds(value), bounds(divisor)
            ends = [x // y for x in (a, b) for y in (max(c, 1), max(d, 1))]
            return min(ends), max(ends)
        case Extreme(left=left, right=right):
            (a, b), (c, d) = bounds(left), bounds(right)
            return factor.of(a, c), factor.of(b, d)


def largest(value: int) -> int:
    """The greatest value that an extent can take: what memory has to hold and costs are counted with."""
    return bounds(value)[1]


def smallest(value: int) -> int:
    """The least value that an extent can take."""
    return bounds(value)[0]


def surely_below(left: int, right: int) -> bool:
    """Whether left < right for all values of the dimensions."""
    if type(left) is int and type(right) is int:
        return left < right
    return bounds(left - right)[1] < 0


def surely_at_most(left: int, right: int) -> bool:
    """Whether left <= right for all values of the dimensions."""
    if type(left) is int and type(right) is int:
        return left <= right
    return bounds(left - right)[1] <= 0


def maximum(*values: int) -> int:
    """The greatest of the values; an `Extreme` where it is not the same one for all values of the dimensions."""
    return _extreme(values, "max")


def minimum(*values: int) -> int:
    """The least of the values; an `Extreme` where it is not the same one for all values of the dimensions."""
    return _extreme(values, "min")


def _extreme(values: Sequence[int], kind: str) -> int:
    if Extent not in map(type, values):
        return max(values) if kind == "max" else min(values)
    best = values[0]
    for value in values[1:]:
        first, second = (value, best) if kind == "max" else (best, value)
        if surely_at_most(first, second):
            continue
        if surely_at_most(second, first):
            best = value
        elif _oracle is None:
            best = Extent((((Extreme(kind, best, value),), 1),))
        elif not _oracle(first, "<=", second):
            best = value
    return best


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, where that is so for all values of the dimensions or for none.

    Raises:
        SymbolicExtentError: they are equal for some.
    """
    if _oracle is not None and isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if left == right or not (is_symbolic(left) or is_symbolic(right)):
        return bool(left == right)
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    difference: Any = left - right
    low, high = bounds(difference)
    if low <= 0 <= high:
        if _oracle is not None:
            return _oracle(left, "==", right)
        undecided = SymbolicExtentError(_undecided(left, "==", right), left, right)
        undecided.sides = left, right  # type: ignore[assignment]
        raise undecided
    return False


def agree(left: Any, right: Any) -> bool:
    """Whether extents, or lists of them, are taken for equal: the same expressions, unless somebody answers more."""
    return bool(left == right) if _oracle is None else same(left, right)


def several(extent: int) -> bool:
    """Whether a loop of this extent is to be written: it is open or runs more than once."""
    return is_symbolic(extent) or extent > 1


DIVIDES = "divides"
"""What is asked of a divisor: that it is positive."""


def can_divide(divisor: int) -> bool:
    """Whether a divisor is positive, but for the extent of an axis that may be empty."""
    if _oracle is not None and is_symbolic(divisor) and bounds(divisor)[0] <= 0 < bounds(divisor)[1]:
        return _oracle(divisor, DIVIDES, 0)
    return _may_be_empty(divisor) or divisor > 0


def cannot_divide(divisor: int) -> bool:
    """Whether a divisor is 0 or less, and not only because an axis of this extent may be empty."""
    return not _may_be_empty(divisor) and divisor <= 0


def _may_be_empty(extent: int) -> bool:
    """Whether nothing depends on a division by the extent where it is 0: there is no element then."""
    return _oracle is None and may_vanish(extent)


def may_vanish(extent: int) -> bool:
    """Whether an open extent can be 0, and is never less."""
    if not is_symbolic(extent) or bounds(extent)[0] != 0:
        return False
    return _oracle is None or not _oracle(extent, ">", 0)


def decided(left: int, operator: str, right: Any) -> bool:
    if isinstance(right, float) and math.isinf(right):
        return right > 0
    low, high = bounds(left - right)
    limit = 0 if operator == "<" else 1
    if high < limit:
        return True
    if low >= limit:
        return False
    if _oracle is not None:
        return _oracle(left, operator, right)
    raise SymbolicExtentError(_undecided(left, operator, right), left, right)


def _undecided(left: Any, operator: str, right: Any) -> str:
    ranges = ", ".join(sorted(map(str, dimensions(left) | dimensions(right))))
    return f"whether {left!r} {operator} {right!r} depends on the extent ({ranges})"
