"""Scatters of many updates to many places, which are put in order first: as onnxruntime has them, wherever they go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from smartmem_rules import OptimizedPlan, optimize

ort = pytest.importorskip("onnxruntime")
REDUCTIONS = ("none", "add", "mul", "max", "min")
WAYS = ("anywhere", "one place", "everywhere once", "few places", "the ends", "rising")
Array = np.ndarray[Any, np.dtype[Any]]


def model(operator: str, feeds: dict[str, Array], shape: Sequence[int], **attributes: Any) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    node = helper.make_node(operator, list(feeds), ["y"], **attributes)
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", kind, shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def places(random: np.random.Generator, way: str, shape: tuple[int, ...], extent: int) -> Array:
    """Places along an axis, from its front or from its end."""
    count = shape[0]
    made = {
        "anywhere": random.integers(-extent, extent, shape),
        "one place": np.full(shape, extent // 3),
        "everywhere once": random.permuted(np.resize(np.arange(extent), shape), axis=0),
        "few places": random.integers(0, 5, shape) * (extent // 7),
        "the ends": np.where(random.random(shape) < 0.5, -extent, extent - 1),
        "rising": np.broadcast_to((np.arange(count) % extent).reshape(-1, *[1] * (len(shape) - 1)), shape).copy(),
    }
    return made[way]


def numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Small whole numbers, whose sums are exact, and signs, whose products are; some NaN among floats."""
    made = random.integers(-9, 10, shape).astype(dtype)
    if made.dtype.kind == "f":
        made.reshape(-1)[random.integers(0, made.size, 3)] = np.nan
    return made


def not_a_number(proto: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    """Where a maximum or minimum is none: NaN stays, as in `Max` (onnxruntime's answer depends on the order)."""
    x, at, u = feeds["x"], feeds["i"], feeds.get("u")
    node = proto.graph.node[0]
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    marks = np.zeros(() if u is None else x.shape, bool)
    if u is None or given.get("reduction", b"none") not in (b"max", b"min"):
        return marks
    marks |= x != x
    if node.op_type == "ScatterND":
        np.logical_or.at(marks, tuple(np.moveaxis(at, -1, 0)), u != u)
        return marks
    grid = list(np.indices(at.shape))
    grid[given.get("axis", 0)] = at
    np.logical_or.at(marks, tuple(grid), u != u)
    return marks


@cache
def planned(model: bytes, level: str) -> OptimizedPlan:
    """The plan of a model, which depends on none of the ways in which places are chosen."""
    return optimize(model, level=level)


def same(proto: onnx.ModelProto, feeds: dict[str, Array], level: str = "smartmem") -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    wanted = np.where(not_a_number(proto, feeds), np.nan, wanted).astype(wanted.dtype)
    np.testing.assert_array_equal(planned(proto.SerializeToString(deterministic=True), level).run(feeds)["y"], wanted)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_elements_of_one_axis(way: str, reduction: str) -> None:
    random = np.random.default_rng(WAYS.index(way))
    x, u = numbers(random, (6007,), "float32"), numbers(random, (5003,), "float32")
    if reduction == "mul":
        u = np.where(np.isnan(u), u, np.sign(u) + (u == 0)).astype(np.float32)
    feeds = {"x": x, "i": places(random, way, (5003,), 6007), "u": u}
    same(model("ScatterElements", feeds, x.shape, reduction=reduction), feeds)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("level", ["none", "smartmem"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_elements_of_several_axes(reduction: str, dtype: str, level: str) -> None:
    random = np.random.default_rng(7)
    x, u = numbers(random, (3, 5003, 2), dtype), numbers(random, (2, 6007, 2), dtype)
    at = np.moveaxis(places(random, "anywhere", (6007, 2, 2), 5003), 0, 1)
    feeds = {"x": x, "i": at, "u": u}
    same(model("ScatterElements", feeds, x.shape, axis=1, reduction=reduction), feeds, level)


@pytest.mark.covering
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("way", ["anywhere", "one place"])
def test_slices_at_places_of_two_axes(way: str, reduction: str) -> None:
    random = np.random.default_rng(3)
    x, u = numbers(random, (71, 83, 3), "float32"), numbers(random, (61, 101, 3), "float32")
    if reduction == "mul":
        u = np.where(np.isnan(u), u, np.sign(u) + (u == 0)).astype(np.float32)
    at = np.stack([places(random, way, (61, 101), extent) for extent in (71, 83)], -1)
    feeds = {"x": x, "i": at, "u": u}
    same(model("ScatterND", feeds, x.shape, reduction=reduction), feeds)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16"])
def test_types_that_are_only_moved(operator: str, dtype: str) -> None:
    random = np.random.default_rng(5)
    x, u = (random.integers(0, 2, 6000).astype(dtype) for _ in range(2))
    at = random.integers(0, 6000, 6000)
    feeds = {"x": x, "i": at if operator == "ScatterElements" else at[:, None], "u": u}
    same(model(operator, feeds, x.shape), feeds)


@pytest.mark.optimized  # it computes for longer than it is compiled
def test_a_hundred_thousand_updates_to_as_many_places() -> None:
    random = np.random.default_rng(0)
    count = 100_000
    x, u = (random.standard_normal(count, np.float32) for _ in range(2))
    feeds: dict[str, Array] = {"x": x, "i": random.integers(0, count, count), "u": u}
    same(model("ScatterElements", feeds, x.shape), feeds)


@pytest.mark.optimized  # it computes for longer than it is compiled
def test_maxima_go_back_to_many_places() -> None:
    random = np.random.default_rng(1)
    shape, grown = (2, 3, 96, 80), (2, 3, 192, 160)
    at = random.permutation(192 * 160)[: 96 * 80].reshape(shape[2:])
    x = random.standard_normal(shape, np.float32)
    feeds: dict[str, Array] = {"x": x, "i": at + np.arange(6).reshape(2, 3, 1, 1) * 192 * 160}
    same(model("MaxUnpool", feeds, grown, kernel_shape=[2, 2], strides=[2, 2]), feeds)


def test_the_scatter_of_old_operator_sets() -> None:
    random = np.random.default_rng(5)
    x, u = numbers(random, (6007,), "float32"), numbers(random, (5003,), "float32")
    feeds = {"x": x, "i": places(random, "anywhere", (5003,), 6007), "u": u}
    proto = model("Scatter", feeds, x.shape)
    proto.opset_import[0].version = 9
    same(proto, feeds)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride"),
    [
        ((1, 1, 8), [2], [1]),
        ((2, 3, 9, 7), [3, 2], [2, 1]),
        ((1, 2, 3000), [3], [1]),
        ((2, 3, 1, 8), [1, 2], [1, 2]),
        ((2, 2, 3, 400), [3, 2], [3, 2]),
        ((4, 3, 2), [2], [2]),
    ],
)
def test_a_maximum_of_windows_goes_back_once(shape: tuple[int, ...], kernel: list[int], stride: list[int]) -> None:
    """Where windows overlap, several have the same largest element: its place is named as often, and holds it once.

    Where the first axis of the pooled tensor has one element, what stands nowhere else is 0 all the same.
    """
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    pool = helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=kernel, strides=stride)
    back = helper.make_node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=kernel, strides=stride)
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph([pool, back], "back", [given], [helper.make_empty_tensor_value_info("y")])
    both = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    found = optimize(both).run({"x": x})["y"]
    wanted = ort.InferenceSession(both.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found, wanted)
    assert set(found[found != 0]) <= set(x.flat)
