"""Models of so many nodes in three shapes: a chain of layers, branches side by side, a chain of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHAIN = (("MatMul", "w"), ("Add", "b"), ("Relu", ""), ("Softmax", ""), ("Mul", "b"))


def chain(nodes: int) -> onnx.ModelProto:
    """Products, biases, activations and normalisations one after the other."""
    made = []
    for i in range(nodes):
        operator, constant = CHAIN[i % len(CHAIN)]
        made.append(helper.make_node(operator, [f"t{i}", constant] if constant else [f"t{i}"], [f"t{i + 1}"]))
    return _model(made, {"t0": (8, 16)}, f"t{nodes}", {"w": _weight(16, 16), "b": _weight(16)})


def wide(nodes: int) -> onnx.ModelProto:
    """Products of one tensor by different weights, and the tree of their sums."""
    count = max(1, nodes // 3)
    constants = {f"w{i}": _weight(16, 16, seed=i) for i in range(count)}
    made, sums = [], [f"b{i}" for i in range(count)]
    for i in range(count):
        made += [helper.make_node("MatMul", ["x", f"w{i}"], [f"a{i}"]), helper.make_node("Relu", [f"a{i}"], [f"b{i}"])]
    while len(sums) > 1:
        left, right = sums[:2]
        made.append(helper.make_node("Add", [left, right], [f"s{len(made)}"]))
        sums = [*sums[2:], f"s{len(made) - 1}"]
    return _model(made, {"x": (8, 16)}, sums[0], constants)


def views(nodes: int) -> onnx.ModelProto:
    """Reshapes and transpositions, one product among six nodes."""
    made = []
    step: tuple[tuple[str, str, list[int] | None], ...] = (
        ("Reshape", "parts", None), ("Transpose", "", [1, 0, 2]), ("Reshape", "rows", None), ("Transpose", "", [1, 0]),
        ("MatMul", "w", None), ("Transpose", "", [1, 0]),
    )  # fmt: skip
    for i in range(nodes // len(step) * len(step)):
        operator, constant, order = step[i % len(step)]
        attributes: dict[str, Any] = {} if order is None else {"perm": order}
        operands = [f"t{i}", constant] if constant else [f"t{i}"]
        made.append(helper.make_node(operator, operands, [f"t{i + 1}"], **attributes))
    shapes = {"parts": np.array([4, 2, 16], np.int64), "rows": np.array([8, 16], np.int64)}
    return _model(made, {"t0": (8, 16)}, f"t{len(made)}", {"w": _weight(8, 8), **shapes})


SHAPES: dict[str, Callable[[int], onnx.ModelProto]] = {"chain": chain, "wide": wide, "views": views}


def _weight(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / 4).astype(np.float32)


def _model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], output: str, constants: dict[str, np.ndarray]
) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, [8, 16])]
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "growth", given, made, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
