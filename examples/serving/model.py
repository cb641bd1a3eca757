"""A small network over images whose number is open: what the server is tried with."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MOST = 16
"""Images that one run takes."""
CLASSES = 10


def build(seed: int = 0) -> onnx.ModelProto:
    """Two convolutions and a classifier over `image`, [batch, 3, 32, 32]; `label` has a probability per class."""
    random = np.random.default_rng(seed)
    shapes = {"w1": (16, 3, 3, 3), "w2": (32, 16, 3, 3), "w3": (32, CLASSES)}
    weights = {
        name: (random.standard_normal(shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
        for name, shape in shapes.items()
    }
    weights["w3"] = random.standard_normal(shapes["w3"]).astype(np.float32)
    around = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], "c1", **around),
        helper.make_node("Relu", ["c1"], ["r1"], "r1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "c2", **around),
        helper.make_node("Relu", ["c2"], ["r2"], "r2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], "p"),
        helper.make_node("Flatten", ["p"], ["f"], "f"),
        helper.make_node("MatMul", ["f", "w3"], ["m"], "m"),
        helper.make_node("Softmax", ["m"], ["label"], "label", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "small_images",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 32])],
        [helper.make_tensor_value_info("label", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
