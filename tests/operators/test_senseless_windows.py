"""Windows that ONNX does not have are refused by name when the model is imported, and not when kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import smartmem_rules as sm
from smartmem_rules.graph.errors import GraphError
from tests.plan.models import model, normal

POOLS = ("MaxPool", "AveragePool", "LpPool")
SENSELESS: tuple[dict[str, Any], ...] = (
    {"strides": [0, 1]}, {"strides": [-1, 1]}, {"strides": [1]}, {"dilations": [0, 1]}, {"dilations": [-1, 1]},
    {"pads": [0, 0]}, {"auto_pad": "SAME"},
)  # fmt: skip


def refused(operator: str, operands: dict[str, Any], attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        sm.optimize(model([(operator, " ".join(operands), "y", attributes)], operands, "y"))


@pytest.mark.parametrize(
    "given", [{"kernel_shape": [0, 2]}, {"kernel_shape": [-1, 2]}, {"kernel_shape": [2]}, *SENSELESS]
)
@pytest.mark.parametrize("operator", POOLS)
def test_pools(operator: str, given: dict[str, Any]) -> None:
    refused(operator, {"x": normal(1, 1, 6, 6)}, {"kernel_shape": [2, 2], **given}, f"{operator} requires are_")


def bytes_of(*shape: int) -> Any:
    return np.ones(shape, np.uint8)


CONVOLUTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Conv": ({"x": normal(1, 1, 6, 6), "w": normal(1, 1, 2, 2)}, {}),
    "ConvInteger": ({"x": bytes_of(1, 1, 6, 6), "w": bytes_of(1, 1, 2, 2)}, {}),
    "QLinearConv": (
        {"x": bytes_of(1, 1, 6, 6)},
        {"sx": np.float32(1), "zx": np.uint8(0), "w": bytes_of(1, 1, 2, 2), "sw": np.float32(1), "zw": np.uint8(0),
         "sy": np.float32(1), "zy": np.uint8(0)},
    ),
}  # fmt: skip
"""Operands of each operator that a run brings, and those that are constants."""


@pytest.mark.parametrize("given", [{"kernel_shape": [3, 3]}, {"kernel_shape": [2]}, {"group": 0}, {"group": -1},
                                   *SENSELESS])  # fmt: skip
@pytest.mark.parametrize("operator", CONVOLUTIONS)
def test_convolutions(operator: str, given: dict[str, Any]) -> None:
    operands, constants = CONVOLUTIONS[operator]
    made = model([(operator, " ".join([*operands, *constants]), "y", given)], operands, "y", constants)
    with pytest.raises(GraphError, match=f"{operator} requires (are_windows|kernel_shape|group)"):
        sm.optimize(made)


@pytest.mark.parametrize("given", [{}, {"kernel_shape": [2, 2]}, {"auto_pad": "SAME_UPPER"}])
@pytest.mark.parametrize("operator", CONVOLUTIONS)
def test_convolutions_that_onnx_has(operator: str, given: dict[str, Any]) -> None:
    operands, constants = CONVOLUTIONS[operator]
    sm.optimize(model([(operator, " ".join([*operands, *constants]), "y", given)], operands, "y", constants))


@pytest.mark.parametrize("given", [{"kernel_shape": [3, 3]}, {"group": 0}, *SENSELESS])
def test_convolutions_with_an_activation(given: dict[str, Any]) -> None:
    shape = {"x": [1, 1, 6, 6], "w": [1, 1, 2, 2]}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, extents) for name, extents in shape.items()]
    node = helper.make_node("FusedConv", ["x", "w"], ["y"], domain="com.microsoft", **given)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([node], "case", values, [result]), opset_imports=versions)
    with pytest.raises(GraphError, match=r"FusedConv requires (are_windows|kernel_shape|group)"):
        sm.optimize(made)


@pytest.mark.parametrize("given", [{"group": 0}, {"group": -1}, {"offset_group": 0}, {"offset_group": -1}])
def test_groups_of_deformed_convolutions(given: dict[str, Any]) -> None:
    operands = {"x": normal(1, 1, 6, 6), "w": normal(1, 1, 2, 2), "offset": normal(1, 8, 5, 5)}
    with pytest.raises(GraphError, match=r"DeformConv requires (offset_)?group > 0"):
        sm.optimize(model([("DeformConv", " ".join(operands), "y", given)], operands, "y", opset=19))


@pytest.mark.parametrize(("given", "shape"), [((0, 4), (-1, 0, -1)), ((2, 2), (-1, -1)), ((1, 1), (-1, 1, -1))])
def test_reshapes_with_two_extents_left_open(given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    operands, constants = {"x": np.zeros(given, np.float32)}, {"shape": np.array(shape)}
    with pytest.raises(GraphError, match="Reshape requires"):
        sm.optimize(model([("Reshape", "x shape", "y", {})], operands, "y", constants))


@pytest.mark.parametrize("given", [{"kernel_shape": [3, 3]}, *SENSELESS])
def test_transposed_windows(given: dict[str, Any]) -> None:
    operands = {"x": normal(1, 1, 6, 6), "w": normal(1, 1, 2, 2, seed=1)}
    refused("ConvTranspose", operands, given, "ConvTranspose requires (are_windows|kernel_shape)")


@pytest.mark.parametrize("given", [{"group": 0}, {"group": -1}, {"output_padding": [-1, 0]}])
def test_transposed_convolutions(given: dict[str, Any]) -> None:
    operands = {"x": normal(1, 1, 6, 6), "w": normal(1, 1, 2, 2, seed=1)}
    refused("ConvTranspose", operands, given, "ConvTranspose requires")


@pytest.mark.parametrize(
    ("operator", "given"),
    [("LRN", {"size": 0}), ("LRN", {"size": -3}), ("DepthToSpace", {"blocksize": 0}),
     ("DepthToSpace", {"blocksize": -2}), ("SpaceToDepth", {"blocksize": -2})],
)  # fmt: skip
def test_sizes_of_blocks_and_neighbourhoods(operator: str, given: dict[str, Any]) -> None:
    refused(operator, {"x": normal(1, 4, 6, 6)}, given, f"{operator} requires (size|blocksize) > 0")


@pytest.mark.parametrize("numbers", [(0.0, 10.0, 0.0), (0.0, np.inf, 1.0), (np.nan, 1.0, 1.0)])
def test_ranges_without_an_end(numbers: tuple[float, float, float]) -> None:
    names = ("start", "limit", "delta")
    constants = {name: np.array(number, np.float32) for name, number in zip(names, numbers, strict=True)}
    with pytest.raises(GraphError, match="Range requires"):
        sm.optimize(model([("Range", " ".join(names), "y", {})], {}, "y", constants))
