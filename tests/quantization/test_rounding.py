"""Weights to integers: ranges, zeros, and no worse than the plain scale of a block."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.quantization import rounding
from smartmem_rules.quantization.options import CODES
from smartmem_rules.quantization.rounding import rounded
from tests.plan.models import normal


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.name)
@pytest.mark.parametrize(("depth", "block"), [(64, 16), (70, 32), (70, 0), (10, 32)])
def test_integers_and_zeros_are_those_of_the_code(code: object, depth: int, block: int) -> None:
    own = CODES[code.name]  # type: ignore[attr-defined]
    matrix = normal(depth, 7) + np.float32(0.3)
    found = rounded(matrix, own, block, "float32")
    blocks = -(-depth // (block or depth))
    assert found.scales.shape == found.zeros.shape == (max(1, blocks), 7)
    assert found.integers.min() >= own.low
    assert found.integers.max() <= own.high
    assert found.zeros.min() >= own.low
    assert found.zeros.max() <= own.high
    assert own.symmetric == (not found.zeros.any())
    # half a step, or what clipping the largest weight of a block costs
    assert np.abs(found.values - matrix).max() <= 0.2 * np.abs(found.scales).max() * 2**own.bits


@pytest.mark.parametrize("name", CODES)
def test_whole_numbers_in_the_range_come_out_as_they_are(name: str) -> None:
    code = CODES[name]
    low, high = -(2 ** (code.bits - 1)), 2 ** (code.bits - 1) - 1
    matrix = np.linspace(low, high, high - low + 1, dtype=np.float32).reshape(-1, 1)
    np.testing.assert_array_equal(rounded(matrix, code, 0, "float32").values, matrix)


@pytest.mark.parametrize("name", CODES)
def test_a_block_of_zeros_stays_zero(name: str) -> None:
    matrix = normal(64, 3)
    matrix[16:32] = 0
    found = rounded(matrix, CODES[name], 16, "float32")
    assert (found.scales != 0).all()
    np.testing.assert_array_equal(found.values[16:32], 0)


def test_weights_lose_no_more_than_by_the_largest_weight_of_each_block() -> None:
    matrix = normal(256, 40)
    found = rounded(matrix, CODES["int4"], 32, "float32")
    parts = matrix.reshape(8, 32, 40)
    scales = np.abs(parts).max(axis=1, keepdims=True) / 7
    plain = np.rint(parts / scales) * scales
    assert np.square(found.values - matrix).sum() < np.square(plain - parts).sum()


def test_columns_are_rounded_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = normal(40, 23)
    whole = rounded(matrix, CODES["uint4"], 16, "float32")
    monkeypatch.setattr(rounding, "TOGETHER", 5)
    parts = rounded(matrix, CODES["uint4"], 16, "float32")
    assert parts.block == whole.block
    for name in ("integers", "scales", "zeros"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_scales_are_numbers_of_the_models_type() -> None:
    found = rounded(normal(64, 5), CODES["uint4"], 32, "float16")
    np.testing.assert_array_equal(found.scales, found.scales.astype(np.float16))
