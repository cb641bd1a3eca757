"""Small models with open dimensions, as exporters write them: shapes are computed where the model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Extent = int | str | None
Node = tuple[str, str, str] | tuple[str, str, str, dict[str, Any]]
INTEGERS = ("ids",)
"""Inputs that hold token numbers."""


def weights(seed: int, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.2).astype(np.float32)


def open_model(
    nodes: Sequence[Node], inputs: dict[str, Sequence[Extent]], outputs: str, constants: dict[str, Any]
) -> onnx.ModelProto:
    made = [helper.make_node(n[0], n[1].split(), n[2].split(), **(n[3] if len(n) == 4 else {})) for n in nodes]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64 if name in INTEGERS else TensorProto.FLOAT, shape)
        for name, shape in inputs.items()
    ]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(made, "open", given, [onnx.ValueInfoProto(name=n) for n in outputs.split()], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def perceptron() -> onnx.ModelProto:
    return open_model(
        [
            ("MatMul", "x w1", "a"),
            ("Add", "a b1", "b"),
            ("Relu", "b", "c"),
            ("MatMul", "c w2", "d"),
            ("Softmax", "d", "y", {"axis": -1}),
        ],
        {"x": ["batch", 20]},
        "y",
        {"w1": weights(1, 20, 33), "b1": weights(2, 33), "w2": weights(3, 33, 10)},
    )


def attention(heads: int = 2, width: int = 24) -> onnx.ModelProto:
    nodes: list[Node] = []
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            ("MatMul", f"x w{name}", f"{name}0"),
            ("Reshape", f"{name}0 split", f"{name}1"),
            ("Transpose", f"{name}1", name, {"perm": order}),
        ]
    nodes += [
        ("MatMul", "q k", "s"),
        ("Mul", "s scale", "t"),
        ("Softmax", "t", "p", {"axis": -1}),
        ("MatMul", "p v", "o"),
        ("Transpose", "o", "o1", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "o1 merge", "o2"),
        ("MatMul", "o2 wo", "o3"),
        ("Add", "o3 x", "o4"),
        ("LayerNormalization", "o4 g b", "y", {"axis": -1}),
    ]
    constants: dict[str, Any] = {f"w{name}": weights(place, width, width) for place, name in enumerate("qkvo")}
    constants |= {"split": np.array([0, 0, heads, width // heads]), "merge": np.array([0, 0, width])}
    constants |= {"scale": np.float32((width // heads) ** -0.5), "g": weights(5, width), "b": weights(6, width)}
    return open_model(nodes, {"x": ["batch", "sequence", width]}, "y", constants)


def embedding() -> onnx.ModelProto:
    """Token and position embeddings; the positions are a table cut to the length of the sequence."""
    return open_model(
        [
            ("Shape", "ids", "s"),
            ("Gather", "s one", "n", {"axis": 0}),
            ("Unsqueeze", "n zeros", "n1"),
            ("Slice", "positions zeros n1 ones", "p"),
            ("Gather", "table ids", "e", {"axis": 0}),
            ("Gather", "places p", "q", {"axis": 0}),
            ("Add", "e q", "y"),
        ],
        {"ids": ["batch", "sequence"]},
        "y",
        {
            "table": weights(1, 50, 16),
            "places": weights(2, 64, 16),
            "positions": np.arange(64)[None],
            "one": np.array(1),
            "ones": np.array([1]),
            "zeros": np.array([0]),
        },
    )


def convolutions() -> onnx.ModelProto:
    return open_model(
        [
            ("Conv", "x w1 b1", "a", {"pads": [1, 1, 1, 1]}),
            ("Relu", "a", "r"),
            ("MaxPool", "r", "m", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
            ("Conv", "m w2", "c", {"strides": [2, 2]}),
            ("GlobalAveragePool", "c", "p"),
            ("Flatten", "p", "f"),
            ("Gemm", "f w3", "y"),
        ],
        {"x": ["batch", 3, "height", "width"]},
        "y c",
        {"w1": weights(1, 8, 3, 3, 3), "b1": weights(2, 8), "w2": weights(3, 12, 8, 3, 3), "w3": weights(4, 12, 7)},
    )


def reductions() -> onnx.ModelProto:
    """Over the open axis itself: a mean (whose count is open), a softmax, the largest."""
    return open_model(
        [
            ("ReduceMean", "x", "m", {"axes": [1], "keepdims": 1}),
            ("Sub", "x m", "d"),
            ("Softmax", "d", "y", {"axis": 1}),
            ("ReduceMax", "x", "z", {"axes": [1], "keepdims": 0}),
        ],
        {"x": ["batch", "sequence", 12]},
        "y z",
        {},
    )


def cache(width: int = 8) -> onnx.ModelProto:
    """Attention over a cache of keys and values that grows by three places."""
    return open_model(
        [
            ("Concat", "past_k k", "kk", {"axis": 2}),
            ("Concat", "past_v v", "vv", {"axis": 2}),
            ("Transpose", "kk", "kt", {"perm": [0, 1, 3, 2]}),
            ("MatMul", "q kt", "s"),
            ("Softmax", "s", "p", {"axis": -1}),
            ("MatMul", "p vv", "y"),
            ("Identity", "kk", "present"),
        ],
        {
            **{name: [1, 2, 3, width] for name in "qkv"},
            **{name: [1, 2, "past", width] for name in ("past_k", "past_v")},
        },
        "y present",
        {},
    )


def causal() -> onnx.ModelProto:
    """A mask made of the shape, and the shape itself as an output."""
    return open_model(
        [
            ("Shape", "x", "s"),
            ("Gather", "s one", "n", {"axis": 0}),
            ("Range", "zero n one", "r"),
            ("Unsqueeze", "r ones", "columns"),
            ("Unsqueeze", "r zeros", "rows"),
            ("LessOrEqual", "rows columns", "mask"),
            ("Transpose", "x", "xt", {"perm": [0, 2, 1]}),
            ("MatMul", "x xt", "scores"),
            ("Where", "mask scores low", "masked"),
            ("Softmax", "masked", "p", {"axis": -1}),
            ("MatMul", "p x", "y"),
        ],
        {"x": ["batch", "sequence", 16]},
        "y s",
        {
            "one": np.array(1),
            "zero": np.array(0),
            "ones": np.array([1]),
            "zeros": np.array([0]),
            "low": np.float32(-1e9),
        },
    )


def recurrent() -> onnx.ModelProto:
    return open_model(
        [("LSTM", "x w r b", "h", {"hidden_size": 5}), ("Squeeze", "h ones", "y")],
        {"x": ["sequence", "batch", 4]},
        "y",
        {"w": weights(1, 1, 20, 4), "r": weights(2, 1, 20, 5), "b": weights(3, 1, 40), "ones": np.array([1])},
    )


def enlarged() -> onnx.ModelProto:
    """Whole factors of open axes, a fraction of a fixed one, and sizes that are computed."""
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return open_model(
        [
            ("Resize", "x none factors", "a", floor),
            ("Resize", "a none third", "b"),
            ("Shape", "x", "s"),
            ("Slice", "s two four", "extents"),
            ("Mul", "extents three", "more"),
            ("Slice", "s zero two", "kept"),
            ("Concat", "kept more", "sizes", {"axis": 0}),
            ("Resize", "x none none sizes", "c"),
            ("Resize", "z none stretched", "d", {"mode": "linear"}),
            ("Resize", "x none same", "e", {"mode": "linear"}),
        ],
        {"x": ["batch", 2, "height", "width"], "z": ["batch", 2, 5, 6]},
        "b c d e",
        {
            "same": np.ones(4, np.float32),
            "none": np.float32([]), "factors": np.float32([1, 1, 2, 2]), "third": np.float32([1, 1, 1, 3]),
            "stretched": np.float32([1, 1, 1.5, 2]), "two": [2], "four": [4], "zero": [0], "three": [3, 3],
        },
    )  # fmt: skip


def every_second() -> onnx.ModelProto:
    """A range in steps of two up to an extent, as positions of an embedding have it."""
    return open_model(
        [
            ("Shape", "x", "s"),
            ("Gather", "s one", "n"),
            ("Range", "zero n two", "places"),
            ("Gather", "x places", "g", {"axis": 1}),
            ("Cast", "places", "p", {"to": TensorProto.FLOAT}),
            ("Mul", "g p", "y"),
        ],
        {"x": ["batch", "sequence"]},
        "y places",
        {"zero": 0, "one": 1, "two": 2},
    )


@dataclass(frozen=True)
class Case:
    """A model, the dimensions of its plan, and the extents to run it at."""

    make: Callable[[], onnx.ModelProto]
    dims: dict[str, int | tuple[int, int]]
    extents: list[dict[str, int]]


def along(name: str, *values: int) -> list[dict[str, int]]:
    return [{name: value} for value in values]


CASES = {
    "perceptron": Case(perceptron, {"batch": (1, 37)}, along("batch", 1, 2, 7, 16, 37)),
    "attention": Case(attention, {"batch": 2, "sequence": (1, 50)}, along("sequence", 1, 3, 6, 13, 16, 17, 32, 49, 50)),
    "attention of batches": Case(
        attention,
        {"batch": (1, 5), "sequence": (1, 19)},
        [{"batch": b, "sequence": s} for b, s in ((1, 1), (2, 2), (3, 17), (5, 5), (5, 19), (1, 16))],
    ),
    "embedding": Case(embedding, {"batch": 1, "sequence": (1, 64)}, along("sequence", 1, 5, 17, 48, 64)),
    "convolutions": Case(convolutions, {"batch": (1, 6), "height": 13, "width": 11}, along("batch", 1, 2, 3, 5, 6)),
    "images": Case(
        convolutions,
        {"batch": 1, "height": (7, 30), "width": (7, 21)},
        [{"height": h, "width": w} for h, w in ((7, 7), (8, 9), (13, 20), (30, 21), (16, 16), (29, 7))],
    ),
    "reductions": Case(reductions, {"batch": 1, "sequence": (1, 40)}, along("sequence", 1, 4, 9, 17, 40)),
    "cache": Case(cache, {"past": (1, 45)}, along("past", 1, 4, 5, 7, 13, 16, 45)),
    "causal": Case(causal, {"batch": 1, "sequence": (1, 45)}, along("sequence", 1, 4, 7, 16, 45)),
    "enlarged": Case(
        enlarged,
        {"batch": (1, 3), "height": (1, 9), "width": (1, 20)},
        [{"batch": b, "height": h, "width": w} for b, h, w in ((1, 1, 1), (2, 4, 7), (3, 9, 20), (1, 8, 16))],
    ),
    "every second": Case(every_second, {"batch": 2, "sequence": (1, 40)}, along("sequence", 1, 2, 7, 16, 39, 40)),
    "recurrent": Case(recurrent, {"batch": 2, "sequence": (1, 20)}, along("sequence", 1, 2, 7, 16, 20)),
    "recurrent batches": Case(recurrent, {"batch": (1, 9), "sequence": 6}, along("batch", 1, 2, 5, 8, 9)),
}
