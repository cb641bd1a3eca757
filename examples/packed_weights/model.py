"""A projection whose weights are packed: two of four bits in a byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "packed_weights.smr"
GROUP = 32
"""Weights that share a scale."""


def build(rows: int = 8, depth: int = 128, columns: int = 128, seed: int = 5) -> onnx.ModelProto:
    """y = x unpacked(w); a byte of w holds the weights of two neighbouring columns, eight more than their value."""
    rng = np.random.default_rng(seed)
    packed = rng.integers(0, 256, (depth, columns // 2)).astype(np.uint8)
    scale = (rng.random((depth, columns // GROUP)) / 8).astype(np.float32)
    nodes = [
        helper.make_node("UnpackNibbles", ["w", "scale"], ["weights"], "unpack", domain="my.ops"),
        helper.make_node("MatMul", ["x", "weights"], ["y"], "project"),
    ]
    graph = helper.make_graph(
        nodes,
        "packed_weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scale, "scale")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)])


def unpacked(packed: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The weights by numpy."""
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
    values: np.ndarray = (nibbles.astype(np.float32) - 8) * scale.repeat(GROUP, axis=1)
    return values
