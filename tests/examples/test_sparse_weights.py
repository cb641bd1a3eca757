"""Sparse weights and floats of 8 bits as packings of one's own: what they stand for, and that they stay packed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import smartmem_rules as sm
from examples.sparse_weights.model import FLOAT8, KINDS, RULES, build, weights
from tests.examples.custom import by_definition, constants_of, optimized


def bytes_of_constants(plan: sm.OptimizedPlan) -> int:
    held = [one for one in plan.plan.tensors.values() if one.role == "constant"]
    return sum(one.type.elements * np.dtype(one.storage).itemsize for one in held)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_right_and_weights_stay_packed(kind: str) -> None:
    model = build(kind)
    plan = optimized(model, RULES)
    x = np.random.default_rng(1).standard_normal((4, 128)).astype(np.float32)
    exact = x.astype(np.float64) @ weights(kind, 64, 128, 3)[1].T
    np.testing.assert_allclose(plan.run({"x": x})["y"], exact, atol=2e-6 * np.abs(exact).max())
    assert bytes_of_constants(plan) <= sum(one.nbytes for one in constants_of(model).values()) < 0.6 * 4 * 64 * 128


@pytest.mark.parametrize("kind", FLOAT8)
def test_every_float_of_8_bits(kind: str) -> None:
    model, every = build(kind, columns=2), np.arange(256, dtype=np.uint8)
    held = {"data": every.reshape(2, 128), "scale": np.array([1, 0.5], np.float32)}
    for one in model.graph.initializer:
        one.CopyFrom(onnx.numpy_helper.from_array(held[one.name], one.name))
    del model.graph.node[1:], model.graph.input[:]
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("weights", onnx.TensorProto.FLOAT, (2, 128)))
    expected = every.view(FLOAT8[kind]).astype(np.float32).reshape(2, 128) * held["scale"][:, None]
    np.testing.assert_array_equal(by_definition(model, RULES, {})["weights"], expected)


def test_without_the_rules_they_are_floats() -> None:
    plan = sm.optimize(build("TwoOfFour"), rules=[RULES], disable=["two_of_four"])
    assert bytes_of_constants(plan) >= 4 * 64 * 128


@pytest.mark.parametrize(("kind", "part"), [("TwoOfFour", "values"), ("Blocks", "blocks"), ("E5M2", "scale")])
def test_parts_that_do_not_fit_are_refused(kind: str, part: str) -> None:
    model = build(kind)
    (held,) = (one for one in model.graph.initializer if one.name == part)
    held.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(held)[1:], part))
    with pytest.raises(sm.SmartmemError):
        sm.optimize(model, rules=[RULES])


@pytest.mark.exhaustive
def test_the_rules_hold_somewhere() -> None:
    reports = sm.verify(RULES, jobs=1, trials=40).rules
    assert {(report.kind, report.verdict) for report in reports} == {("keep", "proved")}
