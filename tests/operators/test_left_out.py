"""What an operator leaves out is not multiplied by 0, which would be NaN for NaN and infinities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.plan.running import Mode, prepare

Array = np.ndarray[Any, np.dtype[Any]]
NAN, INF = np.nan, np.inf
SCORES = np.array([[NAN, 1.0, INF], [2.0, 3.0, 5.0], [-INF, 0.5, NAN]], np.float32)
LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")


def one_node(node: onnx.NodeProto, feeds: Mapping[str, Array], opset: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in feeds.items()
    ]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.parametrize("mode", [Mode(), Mode("none")], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("reduction", "wanted"), [("none", [0, -3, 0]), ("sum", -3), ("mean", -3)])
def test_an_ignored_score_is_no_part_of_the_loss(
    reduction: str, wanted: float | list[float], weighted: bool, mode: Mode
) -> None:
    feeds: dict[str, Array] = {"x": SCORES, "t": np.array([7, 1, 7])}
    if weighted:
        feeds["w"] = np.array([NAN, 1.0, INF], np.float32)
    node = helper.make_node("NegativeLogLikelihoodLoss", [*feeds], ["y"], reduction=reduction, ignore_index=7)
    _, executor = prepare(one_node(node, feeds, 22), mode)
    np.testing.assert_array_equal(executor.run(feeds)["y"], np.array(wanted, np.float32))


@pytest.mark.parametrize("operator", LOSSES)
def test_a_score_that_is_not_ignored_is_a_part_of_the_loss(operator: str) -> None:
    feeds = {"x": SCORES, "t": np.array([0, 1, 7])}
    node = helper.make_node(operator, [*feeds], ["y"], reduction="sum", ignore_index=7)
    _, executor = prepare(one_node(node, feeds, 22), Mode())
    assert np.isnan(executor.run(feeds)["y"])


def test_rows_of_ignored_classes_are_no_part_of_the_cross_entropy() -> None:
    feeds = {"x": SCORES, "t": np.array([7, 1, 7])}
    node = helper.make_node("SoftmaxCrossEntropyLoss", [*feeds], ["y"], reduction="none", ignore_index=7)
    _, executor = prepare(one_node(node, feeds, 22), Mode())
    row = SCORES[1].astype(np.float64)
    np.testing.assert_allclose(executor.run(feeds)["y"], [0, np.log(np.exp(row).sum()) - row[1], 0], rtol=1e-6)


@pytest.mark.parametrize(("mask", "wanted"), [(INF, INF), (-INF, -INF), (2.0, 6.0)])
def test_a_mask_multiplies_what_lies_between_neighbours(mask: float, wanted: float) -> None:
    """A place that is no fraction has neighbours of weight 0; an infinite mask makes NaN of none of them."""
    feeds = {
        "x": np.full((1, 1, 2, 2), 3, np.float32),
        "w": np.ones((1, 1, 1, 1), np.float32),
        "offset": np.zeros((1, 2, 2, 2), np.float32),
        "b": np.zeros(1, np.float32),
        "mask": np.full((1, 1, 2, 2), mask, np.float32),
    }
    node = helper.make_node("DeformConv", [*feeds], ["y"], kernel_shape=[1, 1])
    _, executor = prepare(one_node(node, feeds, 22), Mode())
    np.testing.assert_array_equal(executor.run(feeds)["y"], np.full((1, 1, 2, 2), wanted, np.float32))
