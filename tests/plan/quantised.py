"""Products whose weights are integers of few bits, with what they are in double precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.plan.models import Array

CODES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Integers [depth, columns] with a scale and a zero point for each block of the depth, [blocks, columns]."""

    integers: Array
    scales: Array
    zeros: Array
    block: int

    @staticmethod
    def drawn(depth: int, columns: int, block: int, low: int, high: int, seed: int = 0) -> Weights:
        random = np.random.default_rng(seed)
        shape = (-(-depth // block), columns)
        return Weights(
            integers=random.integers(low, high + 1, (depth, columns)),
            scales=(random.random(shape) * 0.02 + 0.01).astype(np.float32),
            zeros=random.integers(low, high + 1, shape),
            block=block,
        )

    @property
    def exact(self) -> Array:
        """What they stand for, in double precision."""

        def spread(values: Array) -> Array:
            return values.astype(np.float64).repeat(self.block, axis=0)[: len(self.integers)]

        return (self.integers - spread(self.zeros)) * spread(self.scales)


def n_bits(weights: Weights, rows: int, bits: int, zeros: bool) -> onnx.ModelProto:
    """y = x weights as ONNX Runtime's MatMulNBits; without `zeros` the zero points are those that it takes then."""
    depth, columns = weights.integers.shape
    blocks = len(weights.scales)
    padded = np.zeros((blocks * weights.block, columns), np.uint8)
    padded[:depth] = weights.integers
    constants = [
        numpy_helper.from_array(_packed(padded.T, bits).reshape(columns, blocks, -1), "w"),
        numpy_helper.from_array(np.ascontiguousarray(weights.scales.T), "s"),
    ]
    if zeros:
        constants.append(numpy_helper.from_array(_packed(weights.zeros.T.astype(np.uint8), bits), "z"))
    node = helper.make_node(
        "MatMulNBits",
        ["x", *(one.name for one in constants)],
        ["y"],
        "product",
        domain="com.microsoft",
        K=depth,
        N=columns,
        bits=bits,
        block_size=weights.block,
    )
    return _model([node], rows, depth, columns, constants)


def _packed(values: Array, bits: int) -> Array:
    """Neighbouring values of a row in bytes, the first in the lowest bits."""
    each = 8 // bits
    rows = np.pad(values, ((0, 0), (0, -values.shape[1] % each))).reshape(len(values), -1, each)
    shifted = rows.astype(np.uint8) << (np.arange(each, dtype=np.uint8) * bits).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(shifted, axis=2)
    return packed


def dequantized(weights: Weights, rows: int, dtype: str, transposed: bool = False) -> onnx.ModelProto:
    """y = x weights, the weights by DequantizeLinear: per column where one block is all of the depth."""
    depth, columns = weights.integers.shape
    per_column = len(weights.scales) == 1

    def laid(values: Array) -> Array:
        return values.reshape(-1) if per_column and values.shape[0] == 1 else values.T if transposed else values

    constants = [
        _integers("w", laid(weights.integers), dtype),
        numpy_helper.from_array(np.ascontiguousarray(laid(weights.scales)), "s"),
        _integers("z", laid(weights.zeros), dtype),
    ]
    axis = (0 if transposed else 1) if per_column else (1 if transposed else 0)
    blocks = {} if per_column else {"block_size": weights.block}
    product = (
        helper.make_node("Gemm", ["x", "f"], ["y"], "product", transB=1)
        if transposed
        else helper.make_node("MatMul", ["x", "f"], ["y"], "product")
    )
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], "unpack", axis=axis, **blocks), product]
    return _model(nodes, rows, depth, columns, constants)


def _integers(name: str, values: Array, dtype: str) -> onnx.TensorProto:
    return helper.make_tensor(name, CODES[dtype], values.shape, values.reshape(-1).tolist())


def _model(
    nodes: list[onnx.NodeProto], rows: int, depth: int, columns: int, constants: list[onnx.TensorProto]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        constants,
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)
