"""Models in which what windows find is put back: MaxPool with places, then MaxUnpool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from smartmem_rules.fuzzing.expected.conditions import unpools_outside
from smartmem_rules.fuzzing.recipes import sums
from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.fuzzing.sources.by_name import RECIPES


def windows(seed: int) -> list[tuple[list[int], list[int]]]:
    """Kernels and strides of the MaxUnpool nodes that one model has after the recipe was asked for one."""
    builder = Builder(np.random.default_rng(seed), False, ["float32"])
    sums.unpooled(builder)
    nodes = [node for node in builder.nodes if node.op_type == "MaxUnpool"]
    attributes: list[dict[str, Any]] = [
        {given.name: helper.get_attribute_value(given) for given in node.attribute} for node in nodes
    ]
    return [(one["kernel_shape"], one["strides"]) for one in attributes]


def test_windows_overlap_in_some_models_and_not_in_others() -> None:
    assert RECIPES[sums.unpooled] > 0
    found = [one for seed in range(2_621_000_000, 2_621_000_040) for one in windows(seed)]
    overlapping = [any(s < k for k, s in zip(kernel, strides, strict=True)) for kernel, strides in found]
    assert 5 < sum(overlapping) < len(found) - 5


@pytest.mark.parametrize(("place", "outside"), [(0, False), (5, False), (6, True), (-1, True)])
def test_places_are_those_of_the_larger_tensor(place: int, outside: bool) -> None:
    node = helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2], strides=[2])
    x, places = np.ones((1, 1, 3), np.float32), np.array([[[0, 2, place]]])
    assert unpools_outside(node, [x, places]) == outside
    assert unpools_outside(node, [x, places, np.array([1, 1, 3])]) == (outside or place == 5)


def test_pads_make_the_larger_tensor_smaller() -> None:
    node = helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2], pads=[0, 1])
    assert not unpools_outside(node, [np.ones((1, 1, 3), np.float32), np.array([[[0, 1, 2]]])])
    assert unpools_outside(node, [np.ones((1, 1, 3), np.float32), np.array([[[0, 1, 3]]])])
