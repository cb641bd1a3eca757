"""Resize where axes have no tables: open extents, integers; and Resize of opset 10, which had no modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from smartmem_rules import optimize

Array = np.ndarray[Any, np.dtype[Any]]


def resize(
    x: Array, shape: list[int | str], scales: list[float] | None, sizes: list[int] | None, opset: int = 19, **more: Any
) -> onnx.ModelProto:
    constant = np.array(sizes, np.int64) if sizes else np.array(scales, np.float32)
    operands = ["x", "constant"] if opset == 10 else ["x", "", "", "constant"] if sizes else ["x", "", "constant"]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [helper.make_node("Resize", operands, ["y"], **more)],
        "resize",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, [None] * len(shape))],
        [numpy_helper.from_array(constant, "constant")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def by_onnxruntime(model: onnx.ModelProto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize(
    ("scales", "sizes", "attributes"),
    [
        ([1, 1, 1.5, 0.5], None, {"mode": "nearest"}),
        ([1, 1, 2, 2], None, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        ([1, 1, 1.5, 0.5], None, {"mode": "linear"}),
        (None, [1, 2, 5, 9], {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}),
        (None, [1, 2, 5, 9], {"mode": "cubic", "coordinate_transformation_mode": "asymmetric"}),
    ],
)
def test_one_plan_for_images_of_any_size(
    scales: list[float] | None, sizes: list[int] | None, attributes: dict[str, Any]
) -> None:
    images = [np.random.default_rng(n).standard_normal((1, 2, n, 2 * n), np.float32) for n in (1, 4, 7)]
    model = resize(images[0], [1, 2, "h", "w"], scales, sizes, **attributes)
    plan = optimize(model, dims={"h": (1, 9), "w": (2, 18)})
    for image in images:
        assert np.allclose(plan.run({"x": image})["y"], by_onnxruntime(model, image), atol=1e-5)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32"])
def test_integers_are_interpolated_and_cut(kind: str) -> None:
    x = np.random.default_rng(1).integers(0, 120, (1, 2, 6, 8)).astype(kind)
    model = resize(x, [1, 2, 6, 8], [1, 1, 0.5, 1.25], None, mode="linear")
    difference = optimize(model).run({"x": x})["y"].astype(int) - by_onnxruntime(model, x).astype(int)
    assert np.abs(difference).max() <= 1  # where a sum of ONNX Runtime's falls short of a whole number
    assert np.count_nonzero(difference) <= 3
    even = np.full((1, 2, 6, 8), 7, kind)
    assert (optimize(resize(x, [1, 2, 6, 8], None, [1, 2, 11, 13], mode="linear")).run({"x": even})["y"] == 7).all()


@pytest.mark.parametrize(
    ("mode", "scales"), [("nearest", [1, 1, 0.6, 0.7]), ("nearest", [1, 1, 1.5, 1.3]), ("linear", [1, 1, 2.3, 0.7])]
)
def test_the_resize_of_opset_10(mode: str, scales: list[float]) -> None:
    x = np.random.default_rng(2).standard_normal((1, 2, 6, 7), np.float32)
    model = resize(x, [1, 2, 6, 7], scales, None, 10, mode=mode)
    assert np.allclose(optimize(model).run({"x": x})["y"], by_onnxruntime(model, x), atol=1e-5)
