"""Pad that repeats elements and AveragePool where axes are open: one plan for images of any size, or a true message."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import load_rules

Array = np.ndarray[Any, np.dtype[Any]]
BATCH, SIDES = {"b": (1, 3)}, {"h": (4, 9), "w": (5, 11)}


def model(node: onnx.NodeProto, shape: list[int | str], pads: list[int] | None = None) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "open_windows",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None] * len(shape))],
        [] if pads is None else [numpy_helper.from_array(np.array(pads, np.int64), "pads")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)


def pad(mode: str, pads: list[int], shape: list[int | str]) -> onnx.ModelProto:
    return model(helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode), shape, pads)


def agrees(given: onnx.ModelProto, dims: dict[str, tuple[int, int]], shapes: list[tuple[int, ...]]) -> None:
    plan = optimize(given, dims=dims)
    session = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    for seed, shape in enumerate(shapes):
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        assert np.allclose(plan.run({"x": x})["y"], session.run(None, {"x": x})[0], atol=1e-6), shape


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_open_axes_are_padded_with_what_is_there(mode: str) -> None:
    shapes = [(1, 2, 4, 5), (2, 2, 7, 5), (3, 2, 9, 11)]
    agrees(pad(mode, [0, 0, 3, 2, 0, 1, 2, 4], ["b", 2, "h", "w"]), {**BATCH, **SIDES}, shapes)


def test_an_edge_is_repeated_more_often_than_there_are_elements() -> None:
    agrees(pad("edge", [0, 5, 0, 6], ["b", "h"]), {"b": (1, 3), "h": (1, 4)}, [(1, 1), (3, 2), (2, 4)])


def test_an_open_axis_beside_the_padded_ones_needs_no_number() -> None:
    given = pad("reflect", [0, -1, 2, 0, 2, 3], ["b", 4, 6])
    graph = import_model(given, load_rules(), BATCH)
    assert [equation.view is not None for node in graph.nodes for equation in node.equations] == [True]
    agrees(given, BATCH, [(1, 4, 6), (3, 4, 6)])


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 0, 1], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_means_of_windows_over_open_axes(attributes: dict[str, Any]) -> None:
    given = model(helper.make_node("AveragePool", ["x"], ["y"], **attributes), ["b", 2, "h", "w"])
    agrees(given, {**BATCH, **SIDES}, [(1, 2, 4, 5), (2, 2, 7, 6), (3, 2, 9, 11)])


@pytest.mark.parametrize(
    ("mode", "pads", "low"),
    [("reflect", [0, 0, 0, 0, 2, 0], 2), ("wrap", [0, 3, 0, 0, 0, 0], 2), ("edge", [0, -1, 0, 0, 3, 0], 4)],
)
def test_what_cannot_be_open_is_named_with_its_dimension(mode: str, pads: list[int], low: int) -> None:
    with pytest.raises(GraphError) as error:
        import_model(pad(mode, pads, ["b", "h", "w"]), load_rules(), {**BATCH, "h": (low, 9), "w": (5, 11)})
    text = str(error.value)
    assert f"h in {low}..9" in text
    assert text.endswith("--dim h=N")
    assert 'mode == "constant"' not in text
    assert "--rules" not in text
