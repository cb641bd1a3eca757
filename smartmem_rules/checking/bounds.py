"""Judges an output element by element: how far it may be from the reference, by the spread of perturbed runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smartmem_rules.checking.rounding import ROUNDING
from smartmem_rules.checking.walk import Sampled
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.primitives import Array

MARGIN = 12.0
"""How many times the spread of the draws the error of a plan may be: sums in another order, Winograd's products and the
device's elementary functions, whose errors are several times those of ONNX Runtime's."""
_ULPS = 4.0
"""What an output may be off where the draws show no rounding error at all: rewrites may compute it another way."""
_POOLED = 32
"""Elements that are enough for a mean of their spreads."""
_GROUPS = 512
_USEFUL = 0.5
"""A bound that is larger than this share of the output's magnitude does not tell right from wrong."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One output.

    Attributes:
        passed: None where its bounds are too wide to judge it by.
        max_relative_error: max|a - b| / max|reference|; infinite for a wrong shape and for values that are finite in
            only one of both, in no way that a draw shows as well.
        max_error_to_spread: max|a - b| / standard deviation of the reference.
        bound: the bound at the worst element, relative to max|reference|.
        error_to_bound: the largest share of its bound that an element's error is; above 1 the output is wrong.
        wrong: elements whose error exceeds the bound.
        judged: the share of elements whose bound is narrow enough to tell right from wrong.
        reason: what is wrong, in words.
    """

    passed: bool | None
    max_relative_error: float
    bound: float
    error_to_bound: float
    max_error_to_spread: float = 0.0
    wrong: int = 0
    judged: float = 1.0
    reason: str = ""


def judge(result: Array, sampled: Sampled, noise: float, dtype: str) -> Judgement:
    """Compare an output with its reference.

    Args:
        noise: times how much more than the measured rounding error the draws were perturbed.
        dtype: how the plan stores floats.
    """
    reference = sampled.reference
    draws = [draw for draw in sampled.draws if draw.shape == reference.shape]
    if result.shape != reference.shape:
        if any(draw.shape == result.shape for draw in sampled.draws):
            return _undecided("its extents depend on rounding")
        return _failed(f"its shape is {list(result.shape)}, the reference's {list(reference.shape)}")
    if not result.size:
        return Judgement(passed=True, max_relative_error=0.0, bound=0.0, error_to_bound=0.0)
    if (result.dtype.kind == "b") != (reference.dtype.kind == "b"):
        return _failed(f"its elements are {result.dtype}, the reference's {reference.dtype}")
    floats = reference.dtype.kind not in "iub"
    got, wanted = _wide(result), _wide(reference)
    samples = [_wide(draw) for draw in draws]
    seen = _seen(got, wanted, samples, floats)
    finite = np.isfinite(got) & np.isfinite(wanted)
    error = np.where(finite, _distance(got, wanted), 0.0)
    allowed = _bounds(wanted, samples, noise, _ulp(result, dtype) if floats else 0.0)
    if not floats:
        allowed = np.where(_many_values(wanted, samples), allowed, 0.0)
    return _result(wanted, error, allowed, seen, finite)


def _result(wanted: Array, error: Array, allowed: Array, seen: Array, finite: Array) -> Judgement:
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    right = seen | (finite & (error <= allowed))
    with np.errstate(all="ignore"):
        share = np.where(seen & ~(finite & (error <= allowed)), 0.0, error / allowed)
        share = np.where(finite, np.where(error == 0, 0.0, share), np.where(seen, 0.0, np.inf))
    worst = np.unravel_index(int(share.argmax()), share.shape)
    odd = ~finite & ~seen
    off = float(error.max(initial=0.0))
    relative = math.inf if odd.any() else (off / scale if scale else off)
    bound = float(allowed[worst])
    judged = _judged(wanted, allowed)
    wrong = int(right.size - np.count_nonzero(right))
    return Judgement(
        passed=False if wrong else (True if judged >= 0.5 else None),
        max_relative_error=relative,
        bound=bound / scale if scale else bound,
        error_to_bound=float(share[worst]),
        max_error_to_spread=_to_spread(off, wanted) if not odd.any() else math.inf,
        wrong=wrong,
        judged=judged,
        reason=_words(wrong, right.size, worst, odd) if wrong else ("" if judged >= 0.5 else _ILL),
    )


_ILL = "rounding alone may change it by more than half of its magnitude"


def _to_spread(off: float, wanted: Array) -> float:
    finite = wanted[np.isfinite(wanted)]
    spread = float(finite.astype(np.float64).std()) if finite.size else 0.0
    return off / spread if spread else off


def _words(wrong: int, size: int, worst: Sequence[np.intp], odd: Array) -> str:
    kind = ", some of them not finite in only one of both" if odd.any() else ""
    return f"{wrong} of {size} elements are wrong{kind}, the worst at {[int(place) for place in worst]}"


def _failed(reason: str) -> Judgement:
    return Judgement(
        passed=False,
        max_relative_error=math.inf,
        bound=0.0,
        error_to_bound=math.inf,
        max_error_to_spread=math.inf,
        wrong=1,
        reason=reason,
    )


def _undecided(reason: str) -> Judgement:
    return Judgement(
        passed=None, max_relative_error=math.inf, bound=math.inf, error_to_bound=0.0, judged=0.0, reason=reason
    )


def _wide(array: Array) -> Array:
    """Numbers to subtract, all 64 bits of integers among them."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)  # 64 bits of mantissa on the machines that have them
    return array.astype(np.float64)


def _ulp(result: Array, dtype: str) -> float:
    """The relative distance of two numbers of the precision in which the plan keeps an output."""
    if result.dtype.name in ("float16", "bfloat16"):
        return 2 * ROUNDING[result.dtype.name]
    if result.dtype == np.float64:
        return float(np.finfo(np.float64).eps)
    return 2 * ROUNDING[dtype]


def _distance(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(a - b))


def _seen(got: Array, wanted: Array, samples: Sequence[Array], floats: bool) -> Array:
    """Where the output lies among the reference's and the draws' values, or is not finite in the same way as one.

    Integers have to be equal to one of these values; of floats everything between two of them is possible.
    """
    seen: Array = np.zeros(got.shape, bool)
    low, high = wanted, wanted
    for value in (wanted, *samples):
        seen |= got == value
        seen |= np.isnan(got) & np.isnan(value)
        low, high = np.fmin(low, value), np.fmax(high, value)
    if floats:
        seen |= (got >= low) & (got <= high)
    return seen


def _many_values(wanted: Array, samples: Sequence[Array]) -> Array:
    """Where an integer takes at least four values in the draws: a sum of rounded numbers, no choice between two."""
    if len(samples) < 3:
        return np.zeros(wanted.shape, bool)
    values = np.sort(np.stack([wanted, *samples]), axis=0)
    return np.asarray(np.count_nonzero(np.diff(values, axis=0), axis=0) >= 3)


def _bounds(wanted: Array, samples: Sequence[Array], noise: float, ulp: float) -> Array:
    """How far each element may be from the reference."""
    finite = np.isfinite(wanted)
    magnitude = np.where(finite, np.abs(wanted), 0.0)
    spread: Array = np.zeros(wanted.shape)
    for sample in samples:
        spread = np.fmax(spread, np.where(finite & np.isfinite(sample), _distance(sample, wanted), 0.0))
    floor = _ULPS * ulp * np.maximum(magnitude, pooled(magnitude, magnitude)) + _tiny(ulp)
    if not spread.any():
        return np.asarray(np.where(finite, floor, 0.0))
    typical = np.maximum(spread, pooled(spread, magnitude)) / max(1.0, noise)
    return np.asarray(np.where(finite, MARGIN * typical + floor, 0.0))


def _tiny(ulp: float) -> float:
    """Numbers below the normal ones may be flushed to zero, or have lost digits."""
    return float(np.finfo(np.float32).tiny) if ulp > np.finfo(np.float64).eps else float(np.finfo(np.float64).tiny)


def pooled(values: Array, magnitude: Array) -> Array:
    """For each element the mean of non-negative values over elements that are like it.

    A few draws say little about one element, more about many.  Alike are the elements of one slice across an axis (a
    channel, a row), and those whose magnitude in the reference is about the same; the smallest of these means counts.
    """
    mean = float(values.mean())
    best = np.full(values.shape, mean)
    if values.size < 2 * _POOLED:
        return best
    for axis in range(values.ndim):
        others = tuple(a for a in range(values.ndim) if a != axis)
        if values.shape[axis] > 1 and values.size // values.shape[axis] >= _POOLED:
            best = np.minimum(best, values.mean(axis=others, keepdims=True))
    flat = magnitude.reshape(-1)
    order = np.argsort(flat, kind="stable")
    groups = min(_GROUPS, values.size // _POOLED)
    starts = np.linspace(0, values.size, groups + 1).astype(np.int64)
    means = np.add.reduceat(values.reshape(-1)[order], starts[:-1]) / np.diff(starts)
    alike = np.empty(values.size)
    alike[order] = np.repeat(means, np.diff(starts))
    return np.asarray(np.minimum(best, alike.reshape(values.shape)))


def _judged(wanted: Array, allowed: Array) -> float:
    """The share of elements whose bound is small beside the output: beside its element, or its typical magnitude."""
    finite = np.isfinite(wanted)
    if not finite.any():
        return 1.0
    magnitude = np.abs(wanted[finite])
    scale = np.maximum(magnitude, float(magnitude.mean()))
    return float(np.mean(allowed[finite] <= _USEFUL * scale + 2 * float(np.finfo(np.float32).tiny)))
