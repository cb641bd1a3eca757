"""Products whose weights are tensors of a GGUF file, by the bytes of their blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RULES = Path(__file__).parent / "gguf_weights.smr"
WEIGHTS = {"Q4_0": (32, 18), "Q4_K": (256, 144)}
"""The weights and the bytes of a block."""
HALVES = {"Q4_0": 1, "Q4_K": 2}
"""Numbers in half precision at the beginning of a block."""


def blocks(packing: str, rows: int, depth: int, seed: int) -> np.ndarray:
    """Random blocks, uint8[rows, blocks of a row, bytes of a block], with scales of about 0.01, and of 3e-5."""
    random = np.random.default_rng(seed)
    weights, size = WEIGHTS[packing]
    drawn = random.integers(0, 256, (rows, depth // weights, size), dtype=np.uint8)
    count = HALVES[packing]
    scales = (random.standard_normal((rows, depth // weights, count)) / 100).astype(np.float16)
    scales[random.random(scales.shape) < 0.1] = np.float16(3e-5)
    drawn[..., : 2 * count] = scales.view(np.uint8)
    return drawn


def build(packing: str, rows: int = 4, depth: int = 512, columns: int = 96, seed: int = 3) -> onnx.ModelProto:
    """y = x w^T; a row of w is a column of the product, as in GGUF files."""
    nodes = [
        helper.make_node(packing, ["w"], ["weights"], "unpack", domain="gguf"),
        helper.make_node("Transpose", ["weights"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "turned"], ["y"], "project"),
    ]
    graph = helper.make_graph(
        nodes,
        "gguf_weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        [numpy_helper.from_array(blocks(packing, columns, depth, seed), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("gguf", 1)])
