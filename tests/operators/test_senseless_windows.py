"""Windows that ONNX does not have are refused by name when the model is imported, and not when kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
