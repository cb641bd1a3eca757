"""What storing and computing in a plan's precision does to numbers: rounding, its errors, and noise of their size."""

from __future__ import annotations

import numpy as np

from smartmem_rules.checking.kernels import DOUBLE, SINGLE, as_working
from smartmem_rules.tensor.primitives import Array, storage_dtype

ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The largest relative error of rounding to each type in which a plan stores floats."""
NARROWED = ("float16", "bfloat16")
_HALF_BITS = 13
_HALF_STEP = 2.0**-24


def as_stored(array: Array) -> Array:
    """A value of the model in the type in which draws keep it: halves in single precision."""
    return as_working(array, SINGLE)


def relative_noise(array: Array, generator: np.random.Generator) -> Array:
    """The array with every element changed by up to an ulp of single precision, or of its own if that is wider."""
    ulp = float(np.finfo(array.dtype).eps)
    noise = generator.random(array.shape, np.float32) - np.float32(0.5)
    with np.errstate(all="ignore"):
        return np.asarray(array + array * (noise * np.float32(2 * ulp)))


def narrowed(array: Array, dtype: str) -> Array:
    """Single-precision numbers as a plan of a type stores them, still in single precision."""
    if dtype == "bfloat16":
        with np.errstate(all="ignore"):
            return np.asarray(array.astype(storage_dtype(dtype)).astype(SINGLE))
    return _to_half(array) if dtype == "float16" else array


def _to_half(array: Array) -> Array:
    """Single-precision numbers rounded to those of half precision, of any size: plans keep large ones wide."""
    with np.errstate(all="ignore"):
        shifted = array * np.float32((1 << _HALF_BITS) + 1)
        rounded = shifted - (shifted - array)
        small = np.abs(array) < 2.0**-14
        if small.any():
            rounded = np.where(small, np.rint(array / np.float32(_HALF_STEP)) * np.float32(_HALF_STEP), rounded)
        return np.where(np.isfinite(rounded), rounded, array).astype(SINGLE, copy=False)


def rounding(stored: Array, reference: Array, doubles_err: bool | None) -> Array:
    """How far stored numbers are from the reference's: at each element the rounding error of one node.

    Where only one of them is finite the error is zero here; the draws show it.

    Args:
        doubles_err: whether a node of doubles, for which there is nothing more precise to measure by, has such errors.
    """
    if stored.dtype.kind != "f":
        return np.asarray(stored != reference) if stored.shape == reference.shape else np.ones(1, bool)
    if stored.shape != reference.shape:
        return np.ones(1, SINGLE)
    with np.errstate(all="ignore"):
        error = np.abs(reference - stored).astype(SINGLE)
        if stored.dtype == DOUBLE and doubles_err is not False:
            error = np.maximum(error, np.abs(reference) * np.finfo(DOUBLE).eps).astype(SINGLE)
    same = np.isfinite(error)
    return error if same.all() else np.where(same, error, SINGLE.type(0))


def noisy(
    array: Array | None, error: Array | None, noise: float, dtype: str, generator: np.random.Generator
) -> Array | None:
    """A draw's result with noise of the size of the node's rounding error, and at least half an ulp if it has any."""
    if array is None or error is None or array.dtype.kind != "f" or not error.any():
        return array
    if error.shape != array.shape:
        error = np.asarray(error.mean(dtype=DOUBLE), SINGLE)
    with np.errstate(all="ignore"):
        step = ROUNDING[dtype] if array.dtype == SINGLE else float(np.finfo(array.dtype).eps / 2)
        ulp = np.abs(array) * array.dtype.type(step)
        size = np.where(error > 0, error * np.float32(noise) + ulp, array.dtype.type(0))
        change = generator.random(array.shape, np.float32) * np.float32(2) - np.float32(1)
        made = array + size * change
    return np.where(np.isfinite(made), made, array).astype(array.dtype, copy=False)
