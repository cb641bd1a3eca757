"""Products with sparse weights, and with weights of floats of 8 bits."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "sparse_weights.smr"
FLOAT8 = {"E4M3": ml_dtypes.float8_e4m3fn, "E5M2": ml_dtypes.float8_e5m2}
KINDS = ("TwoOfFour", "Blocks", *FLOAT8)
BLOCK = (4, 16)
"""Rows and columns of a block."""


def weights(kind: str, rows: int, depth: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The packed weights by the names of their parts, and the matrix [rows, depth] that they stand for."""
    random = np.random.default_rng(seed)
    if kind == "TwoOfFour":
        return _two_of_four(random, rows, depth)
    if kind == "Blocks":
        return _blocks(random, rows, depth)
    data = random.standard_normal((rows, depth)).astype(FLOAT8[kind])
    scale = (random.random(rows) + 0.5).astype(np.float32)
    return {"data": data.view(np.uint8), "scale": scale}, data.astype(np.float32) * scale[:, None]


def _two_of_four(random: np.random.Generator, rows: int, depth: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Of each four neighbours of a row two, drawn."""
    places = np.sort(np.argsort(random.random((rows, depth // 4, 4)), axis=-1)[..., :2], axis=-1)
    values = random.standard_normal((rows, depth // 4, 2)).astype(np.float32)
    whole = np.zeros((rows, depth // 4, 4), np.float32)
    np.put_along_axis(whole, places, values, axis=-1)
    pairs = places.reshape(rows, depth // 8, 4)
    packed = np.bitwise_or.reduce(pairs << np.array([0, 2, 4, 6]), axis=-1).astype(np.uint8)
    return {"values": values.reshape(rows, -1), "places": packed}, whole.reshape(rows, depth)


def _blocks(random: np.random.Generator, rows: int, depth: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A quarter of the blocks, drawn."""
    high, wide = BLOCK
    grid = (rows // high, depth // wide)
    used = random.permutation(grid[0] * grid[1]) < grid[0] * grid[1] // 4
    place = np.where(used, np.cumsum(used), 0).reshape(grid).astype(np.int64)
    blocks = random.standard_normal((int(used.sum()), high, wide)).astype(np.float32)
    every = np.concatenate([np.zeros((1, high, wide), np.float32), blocks])
    return {"blocks": blocks, "place": place}, every[place].swapaxes(1, 2).reshape(rows, depth)


def build(kind: str, rows: int = 4, depth: int = 128, columns: int = 64, seed: int = 3) -> onnx.ModelProto:
    """y = x w^T; a row of w is a column of the product."""
    parts, _ = weights(kind, columns, depth, seed)
    constants = [numpy_helper.from_array(value, name) for name, value in parts.items()]
    nodes = [
        helper.make_node(kind, list(parts), ["weights"], "unpack", domain="sparse"),
        helper.make_node("Transpose", ["weights"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "turned"], ["y"], "project"),
    ]
    graph = helper.make_graph(
        nodes,
        "sparse_weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19), helper.make_opsetid("sparse", 1)])
