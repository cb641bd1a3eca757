"""CumSum in blocks: every length and direction, exact in integers, and in time that does not grow with the square."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize

FORMS = list(product((0, 1), (0, 1)))
LENGTHS = (1, 2, 127, 128, 129, 16384, 16385, 40000)
"""Around one block, one block of blocks, and more."""


def _model(length: int | str, kind: int, exclusive: int, reverse: int) -> onnx.ModelProto:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    x, y = (helper.make_tensor_value_info(name, kind, (2, length, 3)) for name in "xy")
    graph = helper.make_graph([node], "one", [x], [y], [numpy_helper.from_array(np.array(1), "axis")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def _expected(x: np.ndarray, exclusive: int, reverse: int) -> np.ndarray:
    ordered = x[:, ::-1] if reverse else x
    sums = np.cumsum(ordered, axis=1, dtype=x.dtype)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)
    return sums[:, ::-1] if reverse else sums


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("exclusive", "reverse"), FORMS)
def test_lengths_that_are_known_at_run_time(exclusive: int, reverse: int) -> None:
    plan = optimize(_model("n", onnx.TensorProto.INT32, exclusive, reverse), dims={"n": (1, max(LENGTHS))})
    for length in LENGTHS:
        x = np.random.default_rng(length).integers(-9, 10, (2, length, 3)).astype(np.int32)
        np.testing.assert_array_equal(plan.run({"x": x})["y"], _expected(x, exclusive, reverse))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("length", "dtype"), [(1, np.float64), (300, np.float32), (20_001, np.float64)])
@pytest.mark.parametrize(("exclusive", "reverse"), FORMS)
def test_nan_reaches_what_comes_behind_it(length: int, dtype: type, exclusive: int, reverse: int) -> None:
    x = np.random.default_rng(length).integers(-9, 10, (2, length, 3)).astype(dtype)
    x[0, length // 3, 1], x[1, length // 2, 0] = np.nan, np.inf
    plan = optimize(_model(length, helper.np_dtype_to_tensor_dtype(x.dtype), exclusive, reverse))
    np.testing.assert_array_equal(plan.run({"x": x})["y"], _expected(x, exclusive, reverse))


@pytest.mark.parametrize(("exclusive", "reverse"), FORMS)
def test_the_first_element_is_copied_with_its_sign(exclusive: int, reverse: int) -> None:
    """ONNX: "it will do the sum inclusively meaning the first element is copied as is"."""
    x: np.ndarray = np.full((2, 5, 3), -0.0, np.float32)
    y = optimize(_model(5, onnx.TensorProto.FLOAT, exclusive, reverse)).run({"x": x})["y"]
    assert np.signbit(y[:, -1 if reverse else 0]).all() == (not exclusive)
    assert (y == 0).all()
