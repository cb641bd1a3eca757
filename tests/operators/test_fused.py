"""The fused operators of graph optimizers, on the device, against onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from smartmem_rules import optimize
from tests.operators.overloads import Array

pytest.importorskip("onnxruntime")
pytest.importorskip("pyopencl")


@dataclass(frozen=True)
class Case:
    """Operands are shapes (drawn), arrays, or None for an absent one."""

    operator: str
    operands: tuple[tuple[int, ...] | Array | np.generic | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("o0",)
    domain: str = "com.microsoft"

    def __str__(self) -> str:
        return f"{self.operator}-{len(self.operands)}-{'-'.join(self.attributes)}"


def ints(*values: Any, dtype: str = "int32") -> Array:
    return np.array(values, dtype)


MASK = ints([1, 1, 1, 0, 0], [1, 1, 1, 1, 1])
BYTES = np.arange(12, dtype=np.uint8).reshape(3, 4) * 19
WEIGHTS = (np.arange(192) * 37 % 256).astype(np.uint8).reshape(6, 2, 16)
ROWS = (np.arange(280) * 73 % 251).astype(np.uint8).reshape(7, 40)
NIBBLES = (ROWS % 16).astype(np.int8).astype(ml_dtypes.uint4)
SCALE, ZERO = np.float32(0.05), np.uint8(120)
CASES = [
    Case("FusedMatMul", ((2, 3, 5, 4), (3, 5, 6)), {"transA": 1, "alpha": 0.5}),
    Case("FusedMatMul", ((3, 4), (6, 4)), {"transB": 1}),
    Case("Gelu", ((3, 7),)),
    Case("BiasGelu", ((2, 3, 8), (8,))),
    Case("FastGelu", ((2, 3, 8), (8,))),
    Case("FastGelu", ((2, 9),)),
    Case("QuickGelu", ((2, 9),), {"alpha": 1.5}),
    Case("SkipLayerNormalization", ((2, 3, 8), (2, 3, 8), (8,), (8,), (8,)), {"epsilon": 1e-3}),
    Case("SkipLayerNormalization", ((2, 3, 8), (2, 3, 8), (8,)), {}, ("o0", "", "", "o3")),
    Case("SkipSimplifiedLayerNormalization", ((2, 3, 8), (2, 3, 8), (8,))),
    Case("SimplifiedLayerNormalization", ((2, 3, 8), (8,)), {"axis": -1}, domain=""),
    Case("FusedConv", ((1, 4, 6, 6), (6, 4, 3, 3), (6,)), {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    Case(
        "FusedConv",
        ((1, 4, 6, 6), (6, 2, 3, 3), (6,)),
        {"activation": "LeakyRelu", "activation_params": [0.2], "group": 2, "strides": [2, 2]},
    ),
    Case("FusedGemm", ((3, 4), (6, 4), (6,)), {"activation": "Relu", "transB": 1}),
    Case(
        "EmbedLayerNormalization",
        (
            ints([1, 2, 0], [3, 3, 1]), ints([0, 0, 1], [0, 1, 1]), (5, 8), (4, 8), (2, 8), (8,), (8,),
            ints([1, 1, 0], [1, 1, 1]),
        ),
        {"epsilon": 1e-6},
        ("o0", "o1"),
    ),
    Case("MultiHeadAttention", ((2, 4, 8), (2, 5, 8), (2, 5, 8)), {"num_heads": 2}),
    Case("MultiHeadAttention", ((2, 4, 8), (2, 5, 8), (2, 5, 6), (22,), MASK), {"num_heads": 2}),
    Case(
        "MultiHeadAttention",
        ((2, 4, 8), (2, 4, 8), (2, 4, 8), None, None, (1, 2, 4, 4)),
        {"num_heads": 2, "scale": 0.3},
    ),
    Case("MultiHeadAttention", ((2, 4, 8), (2, 5, 8), (2, 5, 8), None, ints(3, 5)), {"num_heads": 2}),
    Case(
        "MultiHeadAttention",
        ((2, 4, 8), (2, 5, 8), (2, 5, 8), None, ints(3, 5, 0, 4, 8, 0, 3, 8)),
        {"num_heads": 2},
    ),
    Case(
        "MultiHeadAttention",
        ((2, 4, 8), (2, 4, 8), (2, 4, 8), None, ints(3, 4)),
        {"num_heads": 2, "unidirectional": 1, "mask_filter_value": -3.0},
    ),
    Case("Attention", ((2, 4, 8), (8, 24), (24,)), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), MASK), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,)), {"num_heads": 4, "unidirectional": 1}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), ints(3, 5)), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), ints(3, 5, 1, 7)), {"num_heads": 2, "unidirectional": 1}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), ints(3, 5, 0, 5, 10, 0, 3, 8)), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), ints([1], [0])), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 24), (24,), ints([0])), {"num_heads": 2, "unidirectional": 1}),
    Case("Attention", ((2, 2, 8), (8, 24), (24,), ints([[1, 0], [1, 1]], [[0, 1], [1, 0]])), {"num_heads": 2}),
    Case("Attention", ((1, 1, 8), (8, 24), (24,), ints([0])), {"num_heads": 2}),
    Case("Attention", ((2, 5, 8), (8, 22)), {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 6]}),
    Case(
        "Attention",
        ((2, 3, 8), (8, 24), None, ints([0, 1, 1], [1, 0, 1])),
        {"num_heads": 2, "unidirectional": 1, "mask_filter_value": -3.0},
    ),
    Case("RotaryEmbedding", ((2, 3, 12), ints([0, 1, 2], [1, 2, 3], dtype="int64"), (5, 3), (5, 3))),
    Case("RotaryEmbedding", ((2, 3, 12), ints(1, dtype="int64"), (5, 3), (5, 3)), {"interleaved": 1}),
    Case("Trilu", ((2, 4, 5), ints(-1, dtype="int64").reshape(())), {"upper": 0}),
    Case("ExpandDims", ((3, 4), np.int32(-2))),
    Case("Pad", ((3, 4), ints(1, 0, 2, 1, dtype="int64")), {"mode": "edge"}),
    Case("Pad", ((3, 4), ints([1, 0, 2, 1], dtype="int64"))),
    Case("CDist", ((5, 3), (4, 3)), {"metric": "euclidean"}),
    Case("FusedMatMul", ((3, 2, 4), (2, 4, 5)), {"transBatchA": 1}),
    Case("FusedMatMul", ((2, 3, 4), (5, 2, 4)), {"transB": 1, "transBatchB": 1}),
    Case("QLinearAdd", (BYTES, SCALE, ZERO, BYTES, SCALE, ZERO, np.float32(0.2), ZERO)),
    Case("QLinearMul", (BYTES, SCALE, ZERO, BYTES, SCALE, ZERO, np.float32(0.9), ZERO)),
    Case("QLinearSigmoid", (BYTES, SCALE, ZERO, np.float32(1 / 256), np.uint8(0))),
    Case("QLinearConcat", (SCALE, ZERO, BYTES, np.float32(0.07), ZERO, BYTES[:, :2], SCALE, ZERO), {"axis": 1}),
    Case("MatMulIntegerToFloat", (BYTES, BYTES.T.copy(), SCALE, np.linspace(0.1, 0.2, 3, dtype="f"), ZERO, ZERO, (3,))),
    Case("DynamicQuantizeMatMul", ((2, 3, 4), BYTES.T.copy(), SCALE, ZERO)),
    Case("MatMulNBits", ((2, 3, 64), WEIGHTS, (12,)), {"K": 64, "N": 6, "bits": 4, "block_size": 32}),
    Case(
        "MatMulNBits",
        ((2, 3, 64), WEIGHTS, (12,), BYTES.reshape(12)[:6]),
        {"K": 64, "N": 6, "bits": 4, "block_size": 32},
    ),
    Case(
        "MatMulNBits",
        ((3, 64), WEIGHTS.reshape(6, 2, 16)[:, :, :8].copy(), (12,)),
        {"K": 64, "N": 6, "bits": 2, "block_size": 32},
    ),
    Case(
        "MatMulNBits",
        ((3, 64), WEIGHTS.reshape(6, 4, 8)[:, :, :4].copy(), (24,), BYTES.reshape(12)[:6]),
        {"K": 64, "N": 6, "bits": 2, "block_size": 16},
    ),
    Case(
        "MatMulNBits",
        ((3, 80), WEIGHTS.reshape(6, 32)[:, :20].reshape(6, 5, 4).copy(), (30,), BYTES.reshape(6, 2)),
        {"K": 80, "N": 6, "bits": 2, "block_size": 16},
    ),
    Case("MatMulNBits", ((3, 64), WEIGHTS, (6, 2), (6, 2)), {"K": 64, "N": 6, "bits": 4, "block_size": 32}),
    Case(
        "MatMulNBits",
        ((3, 64), WEIGHTS, (12,), None, (np.arange(64) * 5 % 2).astype(np.int32)),
        {"K": 64, "N": 6, "bits": 4, "block_size": 32},
    ),
    Case(
        "MatMulNBits",
        ((3, 64), WEIGHTS, (12,), (12,), (np.arange(64) // 3 % 2).astype(np.int32), (6,)),
        {"K": 64, "N": 6, "bits": 4, "block_size": 32},
    ),
    *(
        Case(
            "GatherBlockQuantized",
            (ROWS[:, : 5 * bits], ints([0, 6, 3], [1, -1, 2], dtype="int64"), (7, 3), *zeros),
            {"bits": bits, "block_size": 16},
        )
        for bits in (2, 4, 8)
        for zeros in ((), (ROWS[:, : -(-3 * bits // 8)],))
    ),
    *(
        Case("GatherBlockQuantized", (NIBBLES, ints(3, 0, dtype="int64"), *others), {"block_size": 16, **axes})
        for axes, others in (({}, ((7, 3),)), ({"gather_axis": 1, "quantize_axis": 0}, ((1, 40), NIBBLES[:1])))
    ),
    Case("DequantizeLinear", (BYTES, SCALE, ZERO)),
    Case(
        "GroupQueryAttention",
        ((1, 6, 32), (1, 6, 16), (1, 6, 16), None, None, ints(5), np.int32(6)),
        {"num_heads": 4, "kv_num_heads": 2, "local_window_size": 3},
        ("o0", "o1", "o2"),
    ),
    Case(
        "GroupQueryAttention",
        (
            (2, 1, 64), (2, 1, 32), (2, 1, 32), (2, 2, 4, 16), (2, 2, 4, 16), ints(4, 4), np.int32(5),
            (10, 8), (10, 8),
        ),
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1},
        ("o0", "o1", "o2"),
    ),
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fused_operator_agrees_with_onnxruntime(case: Case) -> None:
    rng = np.random.default_rng(len(str(case)))
    drawn = (rng.standard_normal(o).astype(np.float32) if isinstance(o, tuple) else o for o in case.operands)
    arrays = [None if array is None else np.asarray(array) for array in drawn]
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(arrays)]
    node = helper.make_node(case.operator, names, list(case.outputs), domain=case.domain, **case.attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
        if array is not None and array.dtype == np.float32
    ]
    constants = [
        onnx.numpy_helper.from_array(array, name)
        for name, array in zip(names, arrays, strict=True)
        if array is not None and array.dtype != np.float32
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in case.outputs if name]
    graph = helper.make_graph([node], case.operator, inputs, outputs, constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    check = optimize(helper.make_model(graph, opset_imports=imports, ir_version=8)).check()
    assert not check.notes, check  # ONNX Runtime agrees with the definitions
    assert check.passed, check
