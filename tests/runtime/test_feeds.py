"""Random inputs and the measure of difference."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.runtime.feeds import compare, random_feeds
from smartmem_rules.tensor.expr import TensorType


def test_random_feeds_are_of_the_asked_types() -> None:
    types = {
        name: TensorType(name, (40, 3)) for name in ("float32", "float16", "float64", "int64", "int8", "uint8", "bool")
    }
    feeds = random_feeds(types, 1, {"int64": 1000, "int8": 1000})
    for name, array in feeds.items():
        assert (array.dtype, array.shape) == (np.dtype(name), (40, 3))
    assert 2 < feeds["int64"].max() < 1000
    assert feeds["int8"].min() >= 0
    assert set(np.unique(feeds["uint8"])) == {0, 1}
    np.testing.assert_array_equal(random_feeds(types, 1)["float32"], feeds["float32"])


@pytest.mark.parametrize(
    ("result", "reference", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([0.5, 0.0], [0.0, 0.0], 0.5),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.inf, 1.0], [np.inf, 2.0], 0.5),
        ([-np.inf, 1.0], [np.inf, 1.0], np.inf),
        ([np.nan, 1.0], [1.0, 1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_the_largest_difference(result: list[float], reference: list[float], relative: float) -> None:
    assert compare(np.array(result), np.array(reference))[0] == relative


def test_the_spread_sees_outputs_that_hardly_vary() -> None:
    reference = 1000 + np.array([-0.1, 0.1])
    relative, spread = compare(reference + 0.05, reference)
    assert relative < 1e-4
    assert spread == pytest.approx(0.5)
