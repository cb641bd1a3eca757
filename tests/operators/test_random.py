"""Operators that draw random numbers: Philox as published, the distributions, and what a run's number decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("pyopencl")

from smartmem_rules import SpecializedModel, optimize
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.runtime.reference import NoReferenceError

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 20_000


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, Array], outputs: list[str], **constants: Any) -> Any:
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "random", given, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def plan_of(operator: str, inputs: dict[str, Array], **attributes: Any) -> Any:
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    return optimize(model_of([node], inputs, ["y"]))


def philox(counter: tuple[int, int], key: int) -> tuple[int, int]:
    """Philox 2x32-10 as the paper's Random123 defines it."""
    word = (1 << 32) - 1
    first, second = counter
    for _ in range(10):
        product = 0xD256D193 * first
        first, second = (product >> 32) ^ key ^ second, product & word
        key = (key + 0x9E3779B9) & word
    return first, second


def distance(sample: Array, distribution: Any) -> float:
    """Kolmogorov and Smirnov's distance between a sample and a distribution function, times the root of its size."""
    ordered = np.sort(sample.astype(np.float64).reshape(-1))
    expected = distribution(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()) * math.sqrt(len(ordered)))


def normal(x: Array) -> Array:
    return np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])


FAR = 1.95
"""A distance that one sample in a thousand exceeds."""


def test_the_generator_is_the_published_one() -> None:
    # the test vectors of Random123
    assert philox((0, 0), 0) == (0xFF1DAE59, 0x6CD10DF2)
    assert philox((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF) == (0x2C3F628B, 0xAB4FD7AD)
    node = helper.make_node("RandomBits", ["run"], ["y"], domain="smartmem", shape=[3, 5], key=12345)
    model = model_of([node], {"run": np.asarray(0)}, ["y"])
    model.opset_import.append(helper.make_opsetid("smartmem", 1))
    for run in (0, 7, -1):
        (bits,) = optimize(model).run({"run": np.asarray(run)}).values()
        wanted = [philox((place, run % (1 << 32)), 12345) for place in range(15)]
        np.testing.assert_array_equal(bits.reshape(-1), np.array([(a << 32) | b for a, b in wanted], np.uint64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_uniform_numbers(dtype: str) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    y = plan_of("RandomUniform", {}, shape=[COUNT], low=-1.0, high=3.0, dtype=code).run({})["y"]
    assert y.dtype == dtype
    assert (y >= -1).all()
    assert (y < 3).all() or dtype == "float16"
    slack = 1.0 if dtype == "float16" else 0.0
    assert distance(y, lambda x: (x + 1) / 4) < FAR + slack


@pytest.mark.parametrize("operator", ["RandomNormal", "RandomNormalLike"])
def test_normal_numbers(operator: str) -> None:
    inputs: dict[str, Array] = {"x": np.zeros((4, COUNT // 4), np.float32)} if operator.endswith("Like") else {}
    shape = {} if inputs else {"shape": [4, COUNT // 4]}
    y = plan_of(operator, inputs, mean=2.0, scale=3.0, **shape).run(inputs)["y"]
    assert y.shape == (4, COUNT // 4)
    assert np.isfinite(y).all()
    assert distance((y - 2) / 3, normal) < FAR
    # neighbours do not depend on each other
    flat = (y.reshape(-1) - 2) / 3
    assert abs(np.mean(flat[1:] * flat[:-1])) < 4 / math.sqrt(COUNT)


def test_choices_by_probability() -> None:
    p = np.repeat(np.array([0, 0.1, 0.5, 0.9, 1], np.float32), 4000)
    y = plan_of("Bernoulli", {"x": p}, dtype=7).run({"x": p})["y"].reshape(5, -1)
    assert y.dtype == np.int64
    assert (y[0] == 0).all()
    assert (y[4] == 1).all()
    np.testing.assert_allclose(y.mean(1), [0, 0.1, 0.5, 0.9, 1], atol=0.03)


def test_classes_by_log_probability() -> None:
    logits = np.log(np.array([[0.1, 0.2, 0, 0.7, 0], [0, 1, 0, 0, 0]], np.float32) + np.float32(1e-38)) + 5
    logits[np.array([[0, 0, 1, 0, 1], [1, 0, 1, 1, 1]], bool)] = -np.inf
    y = plan_of("Multinomial", {"x": logits}, sample_size=4000).run({"x": logits})["y"]
    assert (y[1] == 1).all()
    np.testing.assert_allclose(np.bincount(y[0], minlength=5) / 4000, [0.1, 0.2, 0, 0.7, 0], atol=0.03)


def test_dropout_while_training() -> None:
    nodes = [helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"])]
    x = np.random.default_rng(0).standard_normal((50, 400)).astype(np.float32)
    inputs = {"x": x, "ratio": np.asarray(0.3, np.float32), "training": np.asarray(True)}
    plan = optimize(model_of(nodes, inputs, ["y", "mask"]))
    result = plan.run(inputs)
    np.testing.assert_allclose(result["y"], np.where(result["mask"], x / np.float32(0.7), 0), rtol=1e-6)
    assert abs(result["mask"].mean() - 0.7) < 0.02
    for unchanged in ({"training": np.asarray(False)}, {"ratio": np.asarray(0, np.float32)}):
        result = plan.run({**inputs, **unchanged})
        np.testing.assert_array_equal(result["y"], x)
        assert result["mask"].all()
    assert (plan.run({**inputs, "ratio": np.asarray(1, np.float32)})["y"] == 0).all()


def test_a_run_can_be_repeated_and_nodes_differ() -> None:
    nodes = [
        helper.make_node("RandomUniform", [], ["a"], shape=[64]),
        helper.make_node("RandomUniform", [], ["b"], shape=[64]),
        helper.make_node("RandomUniform", [], ["c"], shape=[64], seed=1.0),
    ]
    plan = optimize(model_of(nodes, {}, ["a", "b", "c"]))
    first, second = plan.run({}), plan.run({})
    again = plan.run({RUN_NUMBER: np.asarray(0)})
    for name in "abc":
        assert not np.array_equal(first[name], second[name])
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["a"], first["b"])
    other = optimize(
        model_of([*nodes[:2], helper.make_node("RandomUniform", [], ["c"], shape=[64], seed=2.0)], {}, ["c"])
    )
    assert not np.array_equal(other.run({})["c"], first["c"])
    with pytest.raises(NoReferenceError, match="draws random numbers"):
        plan.check()


def test_a_computed_shape_is_drawn_for_each_value() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("RandomNormalLike", ["zeros"], ["y"]),
    ]
    made = SpecializedModel(model_of(nodes, {"shape": np.array([1])}, ["y"]))
    assert made.run({"shape": np.array([5])})["y"].shape == (5,)
