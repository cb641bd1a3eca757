"""What the answers of three implementations to special values have in common, for bench/special_values.py."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from special_examples import Kind
from special_runs import Answer

Array = np.ndarray[Any, np.dtype[Any]]
RELATIVE = {"float64": 3e-5, "float32": 3e-5, "float16": 8e-3, "bfloat16": 6e-2}
"""What roundings may change of a number, relative to it: those of the result, and of numbers on the way."""
ABSOLUTE = {"float64": 1e-5, "float32": 1e-5, "float16": 8e-3, "bfloat16": 6e-2}
"""The same for sums of ordinary operands, which are near 1."""
STRICT = {**dict.fromkeys(RELATIVE, 1.0), "float64": 1e-6}
"""By which both are multiplied for ordinary numbers: doubles have to be computed as doubles."""
STEPS = 8
"""Steps of the least denormal number that a denormal result may be off."""


def same(one: Answer, other: Answer, kind: Kind) -> bool:
    """Whether two answers are the same but for roundings."""
    return difference(one, other, kind) is None


def difference(one: Answer, other: Answer, kind: Kind) -> tuple[int, int] | None:
    """The output and the element by which answers differ first; the first one where shapes or types do."""
    if one.arrays is None or other.arrays is None:
        return None if one.why == other.why and one.arrays is other.arrays else (0, 0)
    for place, (a, b) in enumerate(zip(one.arrays, other.arrays, strict=False)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return place, 0
        wrong = np.flatnonzero(~_alike(a.reshape(-1), b.reshape(-1), kind))
        if wrong.size:
            return place, int(wrong[0])
    return None


def _alike(a: Array, b: Array, kind: Kind) -> Array:
    name = a.dtype.name
    if name not in RELATIVE:
        return np.asarray(a == b)
    first, second = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        equal = (first == second) | (np.isnan(first) & np.isnan(second))
        facts = _facts(name)
        vanishing = (kind is Kind.DENORMAL) & (np.abs(second) < 1024 * float(facts.smallest_normal))
        absolute = np.where(vanishing, STEPS * float(facts.smallest_subnormal), ABSOLUTE[name])
        scale = STRICT[name] if kind is Kind.ORDINARY else 1.0
        near = np.abs(first - second) <= scale * (RELATIVE[name] * np.abs(second) + absolute)
        near &= np.isfinite(first) & np.isfinite(second)
        alike = equal | near
        if kind is Kind.ZERO:
            zeros = (first == 0) & (second == 0)
            alike &= ~zeros | (np.signbit(first) == np.signbit(second))
    return np.asarray(alike)


def _facts(dtype: str) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def element(answer: Answer, place: tuple[int, int], digits: int = 4) -> str:
    """One element of an answer as text, or why it has none."""
    if answer.arrays is None:
        return answer.why
    output, index = place
    if output >= len(answer.arrays):
        return "no output"
    array = answer.arrays[output]
    if not array.size:
        return "nothing"
    return text(array.reshape(-1)[index if index < array.size else 0], digits)


def text(value: Any, digits: int = 4) -> str:
    """A number as a table shows it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(value)
    return f"{float(value):.{digits}g}"
