"""Small ONNX models written as lists of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
Node = tuple[str, str, str] | tuple[str, str, str, dict[str, Any]]
"""Operator, operands, results, attributes."""


@dataclass
class Model:
    """A model with values for its inputs."""

    proto: onnx.ModelProto
    feeds: dict[str, Array]

    def __repr__(self) -> str:
        return onnx.printer.to_text(self.proto)


def model(
    nodes: Sequence[Node],
    feeds: Mapping[str, Array],
    outputs: str,
    constants: Mapping[str, Any] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    made = [helper.make_node(n[0], n[1].split(), n[2].split(), **(n[3] if len(n) == 4 else {})) for n in nodes]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(made, "case", inputs, [onnx.ValueInfoProto(name=n) for n in outputs.split()], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 9)
    inferred = onnx.shape_inference.infer_shapes(proto)
    known = {v.name: v for v in (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)}
    for name, value in (constants or {}).items():
        array = np.asarray(value)
        known[name] = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    del proto.graph.output[:]
    proto.graph.output.extend(known[name] for name in outputs.split())
    return proto


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def whole(*shape: int, dtype: str = "int32", low: int = -9, high: int = 9, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).integers(low, high + 1, shape)).astype(dtype)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


__all__ = ["Array", "Mapping", "Model", "Node", "Sequence", "i64", "model", "normal", "whole"]
