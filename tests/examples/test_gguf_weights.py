"""Tensors of GGUF files as operators of one's own: what they hold, and that they stay packed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import smartmem_rules as sm
from examples.gguf_weights.model import RULES, WEIGHTS, blocks, build
from tests.examples.custom import by_definition, optimized

UNPACKED = np.load(Path(__file__).with_name("gguf_weights.npz"))
"""Blocks by their packing, and their weights as the package gguf 0.19.0 unpacks them."""


def numbers(packing: str, packed: np.ndarray) -> np.ndarray:
    """By the definition."""
    graph = helper.make_graph(
        [helper.make_node(packing, ["w"], ["weights"], domain="gguf")],
        "unpacked",
        [helper.make_tensor_value_info("w", TensorProto.UINT8, packed.shape)],
        [helper.make_tensor_value_info("weights", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("gguf", 1)])
    return by_definition(model, RULES, {"w": packed})["weights"]


@pytest.mark.parametrize("packing", WEIGHTS)
def test_numbers_are_those_of_another_implementation(packing: str) -> None:
    np.testing.assert_array_equal(numbers(packing, UNPACKED[packing]), UNPACKED[f"{packing}_weights"])


@pytest.mark.parametrize("packing", WEIGHTS)
def test_products_are_right_and_weights_stay_packed(packing: str) -> None:
    plan = optimized(build(packing), RULES)
    x = np.random.default_rng(1).standard_normal((4, 512)).astype(np.float32)
    exact = x.astype(np.float64) @ numbers(packing, blocks(packing, 96, 512, 3)).T
    np.testing.assert_allclose(plan.run({"x": x})["y"], exact, atol=2e-6 * np.abs(exact).max())
    held = [one for one in plan.plan.tensors.values() if one.role == "constant" and one.type.elements > 256]
    packed, floats = 96 * 512 / 2, 4 * 96 * 512
    assert sum(one.type.elements * np.dtype(one.storage).itemsize for one in held) < 1.3 * packed < floats / 6


def test_without_the_rules_they_are_floats() -> None:
    plan = sm.optimize(build("Q4_0"), rules=[RULES], disable=["q4_0_weights"])
    assert not any(one.storage in ("uint8", "uint32") for one in plan.plan.tensors.values())


def test_blocks_that_are_not_whole_are_refused() -> None:
    model = build("Q4_0")
    packed = onnx.numpy_helper.to_array(model.graph.initializer[0])
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(packed[..., 1:], "w"))
    with pytest.raises(sm.SmartmemError, match="Q4_0"):
        sm.optimize(model, rules=[RULES])


@pytest.mark.exhaustive
def test_the_rules_hold_somewhere() -> None:
    reports = sm.verify(RULES, jobs=1, trials=40).rules
    assert {(report.kind, report.verdict) for report in reports} == {("keep", "proved")}
