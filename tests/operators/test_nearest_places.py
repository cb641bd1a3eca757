"""Which element Resize takes for the nearest, where a place lies between two or roundings decide: as ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.operators.overloads import run_node

Array = np.ndarray[Any, np.dtype[Any]]
EXTENTS = [(n, m) for n in (1, 2, 5, 6, 7) for m in (1, 2, 3, 4, 7, 9, 10, 12, 14)]
OPSET = 19
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def by_onnxruntime(pairs: list[tuple[int, int]], roi: Array, **attributes: str) -> list[Array]:
    """A row of n numbers each that is resized to m."""
    nodes, given, made, constants = [], [], [], [helper.make_tensor("roi", TensorProto.FLOAT, [2], roi)]
    for k, (n, m) in enumerate(pairs):
        nodes.append(helper.make_node("Resize", [f"x{k}", "roi", "", f"m{k}"], [f"y{k}"], mode="nearest", **attributes))
        given.append(helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, [n]))
        made.append(helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, [m]))
        constants.append(helper.make_tensor(f"m{k}", TensorProto.INT64, [1], [m]))
    graph = helper.make_graph(nodes, "places", given, made, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {f"x{k}": np.arange(n, dtype=np.float32) for k, (n, _) in enumerate(pairs)}))


def nearest_of(n: int, m: int, roi: Array, **attributes: str) -> list[list[float]]:
    """A row of n numbers that is resized to m, by each definition that takes the node."""
    node = helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], mode="nearest", **attributes)
    runs = run_node(node, OPSET, [np.arange(n, dtype=np.float32), roi, None, np.array([m])])
    return [y.tolist() for run in runs for y in run.outputs]


@pytest.mark.parametrize("nearest", NEAREST)
@pytest.mark.parametrize(
    ("mode", "roi"),
    [
        ("half_pixel", (0, 1)),
        ("pytorch_half_pixel", (0, 1)),
        ("align_corners", (0, 1)),
        ("tf_crop_and_resize", (0.1, 0.8)),
        ("tf_crop_and_resize", (0.25, 0.75)),
    ],
)
def test_places(mode: str, roi: tuple[float, float], nearest: str) -> None:
    # of an axis that keeps its extent ONNX Runtime takes each element, whatever the region
    pairs = [(n, m) for n, m in EXTENTS if n != m or mode != "tf_crop_and_resize"]
    attributes = {"coordinate_transformation_mode": mode, "nearest_mode": nearest}
    region = np.array(roi, np.float32)
    for (n, m), expected in zip(pairs, by_onnxruntime(pairs, region, **attributes), strict=True):
        results = nearest_of(n, m, region, **attributes)
        assert results
        assert all(y == expected.tolist() for y in results), (n, m)


@pytest.mark.parametrize("nearest", NEAREST)
def test_centres_that_are_kept_change_no_place(nearest: str) -> None:
    region = np.array([0, 1], np.float32)
    for n, m in EXTENTS:
        one, other = (
            nearest_of(n, m, region, coordinate_transformation_mode=mode, nearest_mode=nearest)
            for mode in ("half_pixel_symmetric", "half_pixel")
        )
        assert one
        assert one[0] == other[0], (n, m)
