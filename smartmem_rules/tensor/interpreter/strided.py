"""Reads at indices that are linear in the loop variables, as strided views of the tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Condition, Logic, Read
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.primitives import Array

Ranges = Callable[[Var], tuple[int, int]]

_MOST_PADDING = 4
"""A padded copy may have at most this many times the elements of the tensor."""


def linear_bounds(index: Index, ranges: Ranges) -> tuple[int, int] | None:
    """The least and greatest value of an index that is linear in variables, else None."""
    low = high = index.constant
    for atom, coefficient in index.terms:
        if not isinstance(atom, Var):
            return None
        start, stop = ranges(atom)
        first, last = coefficient * start, coefficient * (stop - 1)
        low += min(first, last)
        high += max(first, last)
    return low, high


def strided_view(array: Array, indices: Sequence[Index], axes: Sequence[Var], ranges: Ranges) -> Array | None:
    """The elements at linear indices inside the array as a view, one axis for each of `axes`; None where not so.

    An axis whose variable no index uses has extent 1.
    """
    bounds = [linear_bounds(index, ranges) for index in indices]
    for bound, extent in zip(bounds, array.shape, strict=True):
        if bound is None or bound[0] < 0 or bound[1] >= extent:
            return None
    strides: dict[Var, int] = {}
    first = []
    for index, stride in zip(indices, array.strides, strict=True):
        start = index.constant
        for atom, coefficient in index.terms:
            assert isinstance(atom, Var)
            strides[atom] = strides.get(atom, 0) + coefficient * stride
            start += coefficient * ranges(atom)[0]
        first.append(slice(start, None))
    shape = [ranges(v)[1] - ranges(v)[0] if v in strides else 1 for v in axes]
    if 0 in shape or array.size == 0:
        return np.zeros(shape, array.dtype)
    steps = [strides.get(v, 0) for v in axes]
    # numpy takes some types of other packages (float8_e5m2) for its own in a view by strides, and does not know them
    raw = array if array.dtype.isbuiltin == 1 else array.view(f"V{array.dtype.itemsize}")
    return np.lib.stride_tricks.as_strided(raw[tuple(first)], shape, steps, writeable=False).view(array.dtype)


def padded_view(
    array: Array, read: Read, condition: Condition, fill: float | int | bool, axes: Sequence[Var], ranges: Ranges
) -> Array | None:
    """`read else fill` at linear indices, as a view of a padded copy; None where the condition says anything else."""
    tests = condition.operands if isinstance(condition, Logic) and condition.operator == "and" else (condition,)
    allowed: dict[Compare, tuple[int, int]] = {}
    for axis, (index, extent) in enumerate(zip(read.indices, array.shape, strict=True)):
        allowed[Compare("<=", Index(0), index)] = axis, 0
        allowed[Compare("<", index, Index(extent))] = axis, 1
    if not all(isinstance(test, Compare) and test in allowed for test in tests):
        return None
    guarded = {allowed[test] for test in tests if isinstance(test, Compare)}
    padding = []
    for axis, (index, extent) in enumerate(zip(read.indices, array.shape, strict=True)):
        bounds = linear_bounds(index, ranges)
        if bounds is None:
            return None
        before, after = max(0, -bounds[0]), max(0, bounds[1] - extent + 1)
        if (before and (axis, 0) not in guarded) or (after and (axis, 1) not in guarded):
            return None
        padding.append((before, after))
    padded = math.prod(n + before + after for n, (before, after) in zip(array.shape, padding, strict=True))
    if padded > _MOST_PADDING * max(array.size, 1 << 12):
        return None
    copy = np.pad(array, padding, constant_values=np.asarray(fill).astype(array.dtype))
    moved = [
        Index(index.constant + before, index.terms) for index, (before, _) in zip(read.indices, padding, strict=True)
    ]
    return strided_view(copy, moved, axes, ranges)
