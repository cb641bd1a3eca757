"""TopK of few elements among many: blocks, ties, NaN and infinities, along any axis, exactly."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize


def _model(x: np.ndarray, axis: int, k: int, largest: int) -> onnx.ModelProto:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    outputs = [helper.make_tensor_value_info("v", kind, None), helper.make_tensor_value_info("i", 7, None)]
    held = [numpy_helper.from_array(np.array([k]), "k")]
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", kind, x.shape)], outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _places(x: np.ndarray, axis: int, k: int, largest: int) -> np.ndarray:
    moved = np.moveaxis(x, axis, -1)
    marks = np.isnan(moved) if x.dtype.kind == "f" else np.zeros(moved.shape, bool)
    keys = np.where(marks, 0, moved).astype(np.float64)
    sign = -1 if largest else 1
    order = np.broadcast_to(np.arange(moved.shape[-1]), moved.shape)
    return np.moveaxis(np.lexsort((order, sign * keys, sign * marks.astype(int)), axis=-1)[..., :k], -1, axis)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis", "k", "dtype"),
    [
        ((2048,), 0, 1, np.float32),
        ((2047,), 0, 3, np.float32),  # too few for blocks
        ((3, 5001), 1, 7, np.float32),
        ((2100, 3), 0, 65, np.int32),
        ((2, 8400), -1, 200, np.float16),
        ((1, 140_000), 1, 5, np.float64),
    ],
    ids=str,
)
def test_few_of_many(shape: tuple[int, ...], axis: int, k: int, dtype: type, largest: int) -> None:
    random = np.random.default_rng(k)
    x = np.round(random.standard_normal(shape) * 40).astype(dtype)
    if x.dtype.kind == "f":
        for special in (np.nan, np.inf, -np.inf):
            x.reshape(-1)[random.integers(0, x.size, 3)] = special
    found = optimize(_model(x, axis, k, largest)).run({"x": x})
    places = _places(x, axis, k, largest)
    np.testing.assert_array_equal(found["i"], places)
    np.testing.assert_array_equal(found["v"], np.take_along_axis(x, places, axis))


def test_two_elements_of_the_last_block_are_candidates() -> None:
    """The last block has fewer elements than are asked for."""
    x = np.arange(2049, dtype=np.float32)
    found = optimize(_model(x, 0, 9, 1)).run({"x": x})
    np.testing.assert_array_equal(found["i"], np.arange(2048, 2039, -1))
