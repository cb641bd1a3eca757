"""How far an output may be from what a reference computes, and what of it is known at all.

Runs of the reference with random roundings differ by the model's own conditioning. A right implementation may differ
by some times as much, and by a few units in the last place of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.node_runner import is_float
from smartmem_rules.fuzzing.expected.precisions import PRECISIONS, Precision
from smartmem_rules.records import dataclass

_FACTOR = 8.0
"""How many times the spread an error may be: the spread of a few runs is below that of all."""
_ILL_CONDITIONED = 64.0
"""The same for elements that the runs move by half of their size: near a pole the spread of a few runs says little."""
_OWN_ULPS = 64.0
"""Units in the last place by which any element may differ: elementary functions of several steps."""
_GATES_ULPS = 128.0
"""Units in the last place of 1 by which a state behind gates may differ: others' tanh and logistic functions are
rational approximations in single precision."""


@dataclass(frozen=True)
class Expected:
    """One output: its value, by how much an element may be off, and which elements are known at all.

    Attributes:
        extents: of its shape; None where roundings decide it, as they do how many different numbers there are.
    """

    value: Array
    bound: Array
    known: Array
    dtype: str
    extents: tuple[int | None, ...]


def expected_of(
    value: Array, base: Array, others: Sequence[Array], precision: Precision | None, gated: bool
) -> Expected:
    """An output with its bounds.

    Args:
        value: as it is at the model's own element types.
        base: in double precision, without noise.
        others: in double precision, with random roundings.
        precision: how an implementation holds it; None where it holds no reals.
        gated: whether a recurrent operator gives it.
    """
    shapes = {one.shape for one in (base, value, *others)}
    extents = tuple(one if len(set(found)) == 1 else None for one, *found in zip(base.shape, *shapes, strict=True))
    if None in extents:
        return Expected(base, np.zeros(base.shape), np.zeros(base.shape, bool), value.dtype.name, extents)
    known = np.ones(base.shape, bool)
    spread = np.zeros(base.shape)
    number = base.dtype.kind not in "OSU"
    for other in others if number else []:
        same = (base == other) | ((base != base) & (other != other))
        both = np.isfinite(double(base)) & np.isfinite(double(other))
        known &= same | both
        spread = np.maximum(spread, np.where(both, np.abs(double(base) - double(other)), 0.0))
    if precision is None:
        return Expected(base, spread * 2, known & _within(value, base, spread * 2), value.dtype.name, extents)
    # squares vanish below the root of the least number, on the way to a result that does not
    known &= ~((double(value) == 0) & (np.abs(base) < np.sqrt(precision.least)) & (base != 0))
    own = _OWN_ULPS * precision.unit * np.abs(np.where(np.isfinite(base), base, 0)) + precision.least
    if gated:
        own = np.maximum(own, _GATES_ULPS * precision.unit)
    factor = np.where(spread > np.abs(base) / 2, _ILL_CONDITIONED, _FACTOR)
    bound = factor * spread + own
    known &= (bound < precision.most) & _within(value, base, bound)
    return Expected(base, bound, known, value.dtype.name, extents)


def _within(native: Array, base: Array, bound: Array) -> Array:
    """Where ONNX Runtime's own element types give what double precision gives: elsewhere the model asks for more."""
    if base.dtype.kind in "OSU":
        return np.ones(base.shape, bool)
    one, other = double(native), double(base)
    if native.dtype.name in PRECISIONS:
        most = PRECISIONS[native.dtype.name].most
        other = np.where(np.abs(other) > most, np.copysign(np.inf, other), other)
    return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= bound))


def agree(natives: Sequence[Array], precise: Sequence[Array], excused: Sequence[Array]) -> bool:
    """Whether two computations of one node are the same but for roundings: evaluators have faults of their own.

    Args:
        excused: elements of each result that overflow on their way; where they are not finite, they may differ.
    """
    for one, other, mask in zip(natives, precise, excused, strict=True):
        if one.shape != other.shape or is_float(one) != is_float(other):
            return False
        if not is_float(one):
            if not np.array_equal(one, other):
                return False
            continue
        precision = PRECISIONS[one.dtype.name]
        first, second = double(one), double(other)
        beyond = np.abs(second) > precision.most
        rounded = beyond & (np.abs(second) < precision.most * (1 + precision.unit)) & np.isfinite(first)
        second = np.where(beyond, np.where(rounded, first, np.copysign(np.inf, second)), second)
        first = np.where(mask & ~np.isfinite(first), second, first)
        if not np.array_equal(np.isnan(first), np.isnan(second)):
            return False
        finite = np.isfinite(first) & np.isfinite(second)
        if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
            return False
        scale = float(np.abs(first[finite]).max(initial=0.0))
        bound = min(4000 * precision.unit, 0.01) * scale + precision.least
        if not np.all(np.abs(first - second)[finite] <= bound):
            return False
    return True


def double(value: Array) -> Array:
    """The same numbers in double precision."""
    return value.astype(np.float64)
