"""Values at which numbers are decided: NaN, infinities, zeros, denormals, limits, halves, quarter turns."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 0.1, -7.25, np.nan, np.inf, -np.inf,
    1e-45, -1e-45, 1e-40, -1e-40, 1.1754944e-38, -1.1754944e-38, 2.4e-38, 1e-30, 1e-8, -1e-8, 1e-4, -1e-4,
    9.0, -9.0, 20.0, -20.0, 44.0, 86.9, -86.9, 87.0, -87.0, 88.0, -88.0, 88.72, 88.73, -104.0, 710.0, -746.0,
    1.5707964, 3.1415927, -3.1415927, 6.2831855, 1e2, 1e3, 3e4, 65504.0, 65520.0, 1e5, 1048575.0, 1048576.0, 1e6,
    8388608.5, 16777216.0, 16777217.0, 1e8, 2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967296.0,
    1e10, -1e10, 9.2233715e18, 9.223372e18, -9.223372e18, 1.8446744e19, 1e20, -1e20, 1e30, -1e30, 3.4e38, -3.4e38,
    0.33333334, 0.99999994, 1.0000001, -0.99999994, 4.0, -8.0, 300.7, -300.7,
)  # fmt: skip


def floats(dtype: str = "float32") -> Array:
    """The special values of a float type."""
    with np.errstate(all="ignore"):
        return np.unique(np.array(_FLOATS, np.float64).astype(dtype).view(f"u{np.dtype(dtype).itemsize}")).view(dtype)


def integers(dtype: str) -> Array:
    """The special values of an integer type: zero, ones, small ones, powers of two, the limits and their neighbours."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    values = {0, 1, 2, 3, 5, 7, limits.bits - 1, limits.bits, limits.bits + 1, high, high - 1, high // 2, low, low + 1}
    values |= {-1, -2, -3, -7, -limits.bits}
    return np.array(sorted(v for v in values if low <= v <= high), dtype)


def values(dtype: str) -> Array:
    """The special values of any type."""
    if dtype == "bool":
        return np.array([False, True])
    return floats(dtype) if "float" in dtype else integers(dtype)


def pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """Each value of the first with each of the second."""
    a, b = np.meshgrid(first, second, indexing="ij")
    return a.ravel(), b.ravel()


def whole_vectors(*arrays: Array, width: int = 8) -> tuple[Array, ...]:
    """The arrays, their last elements repeated so that their length is a multiple of the width."""
    length = -len(arrays[0]) % width
    return tuple(np.concatenate([array, np.repeat(array[-1:], length)]) for array in arrays)
