"""How large and how small the elements of constants are."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from smartmem_rules.guards.magnitudes import _PIECE, LARGEST, Magnitudes, is_moderate, magnitudes

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (0.0, math.inf, False)),
        ([0.0, -0.0], (0.0, math.inf, True)),
        ([-3.0, 0.5, 2.0], (3.0, 0.5, False)),
        ([-3.0, 0.0, 2.0], (3.0, 2.0, True)),
        ([1.0, -math.inf], (math.inf, 1.0, False)),
    ],
)
def test_magnitudes_of_a_few(values: list[float], expected: tuple[float, float, bool]) -> None:
    largest, least, has_zeros = expected
    found = magnitudes(np.array(values, np.float32))
    assert found.largest == largest
    if math.isfinite(largest):
        assert found == Magnitudes(largest=largest, least=least, has_zeros=has_zeros)


@pytest.mark.parametrize("dtype", list(LARGEST))
@pytest.mark.parametrize("place", [0, _PIECE - 1, _PIECE, 2 * _PIECE])
def test_one_element_of_many_counts(dtype: str, place: int) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    for value in (math.nan, math.inf, -math.inf):
        many = np.ones(2 * _PIECE + 1, kind)
        many[place] = value
        assert not is_moderate(magnitudes(many), dtype)
    many = np.ones((2 * _PIECE + 1, 1), kind)
    many[place] = 0
    assert magnitudes(many.T) == Magnitudes(largest=1.0, least=1.0, has_zeros=True)
    assert is_moderate(magnitudes(many), dtype)
