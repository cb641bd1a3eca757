"""TopK among many elements: blocks, ties, NaN and infinities, along any axis, exactly."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize

pytestmark = pytest.mark.sampled(2)


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


@pytest.mark.sampled(4)
@pytest.mark.optimized  # it computes for longer than it is compiled
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis", "k", "dtype"),
    [
        ((2048,), 0, 1, np.float32),
        ((2047,), 0, 3, np.float32),  # too few for blocks
        ((3, 5001), 1, 7, np.float32),
        ((2, 1026), 1, 1025, np.float32),
        ((9000,), 0, 9000, np.float32),
        ((3, 3000), 1, 40, np.int64),
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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "k"),
    [(np.float32, 131), (np.float16, 131), (np.int8, 7), (np.uint16, 131), (np.int32, 131), (np.uint32, 131)],
)
def test_ends_of_the_range_and_equal_elements_keep_their_order(dtype: type, k: int, largest: int) -> None:
    """Keys of elements: all are different, and none is that of no element."""
    if np.dtype(dtype).kind == "f":
        info = np.finfo(dtype)
        ends = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, info.max, info.min, info.tiny, -info.tiny]
    else:
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    x = np.random.default_rng(k).choice(np.array(ends, dtype), (2, 131))
    found = optimize(_model(x, 1, k, largest)).run({"x": x})
    places = _places(x, 1, k, largest)
    np.testing.assert_array_equal(found["i"], places)
    np.testing.assert_array_equal(found["v"], np.take_along_axis(x, places, 1))


def test_of_an_open_extent_another_overload_may_be_the_first_that_fits() -> None:
    """Whether there are elements enough for blocks depends on the extent: then all are compared with all."""
    x = np.random.default_rng(3).standard_normal((2, 700)).astype(np.float32)
    model = _model(x, 1, 5, 1)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    found = optimize(model, dims={"n": (30, 5000)}).run({"x": x})
    np.testing.assert_array_equal(found["i"], _places(x, 1, 5, 1))
