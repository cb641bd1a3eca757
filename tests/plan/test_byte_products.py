"""Products of integers of 8 bits: exact sums, whichever sizes, types and zero points the factors have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules
from smartmem_rules.plan.kernel.byte_factors import packed_bytes

Array = np.ndarray[Any, np.dtype[Any]]
KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, Array], constants: dict[str, Array], output: str, kind: int
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "bytes",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info(output, kind, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def drawn(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    bounds = np.iinfo(kind)
    return random.integers(bounds.min, bounds.max + 1, shape).astype(kind)


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("batch", "rows", "depth", "columns"),
    [((), 5, 64, 48), ((), 33, 70, 17), ((), 1, 1, 1), ((), 7, 3, 5), ((3,), 4, 9, 33), ((2,), 1, 257, 8)],
)
@pytest.mark.parametrize("known", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")])
def test_sums_are_exact(
    batch: tuple[int, ...], rows: int, depth: int, columns: int, known: bool, kinds: tuple[str, str]
) -> None:
    random = np.random.default_rng(depth + columns)
    a, b = drawn(random, kinds[0], (*batch, rows, depth)), drawn(random, kinds[1], (*batch, depth, columns))
    for end in ("min", "max"):
        zeros = {f"z{name}": np.array(getattr(np.iinfo(v.dtype), end), v.dtype) for name, v in (("a", a), ("b", b))}
        node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
        inputs = {"a": a} if known else {"a": a, "b": b}
        product = model([node], inputs, zeros | ({"b": b} if known else {}), "y", TensorProto.INT32)
        plan = smartmem_rules.optimize(product, device="pocl")
        expected = (a.astype(np.int64) - int(zeros["za"])) @ (b.astype(np.int64) - int(zeros["zb"]))
        np.testing.assert_array_equal(plan.run(inputs)["y"], expected)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("channels", "filters", "extent", "window", "groups", "stride"),
    [(3, 32, 17, 3, 1, 2), (32, 32, 9, 3, 32, 1), (24, 24, 7, 3, 4, 1), (96, 24, 5, 1, 1, 1), (17, 5, 6, 3, 1, 1)],
)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_convolutions_are_those_of_onnxruntime(
    channels: int, filters: int, extent: int, window: int, groups: int, stride: int, kind: str
) -> None:
    random = np.random.default_rng(channels)
    x = drawn(random, kind, (1, channels, extent, extent))
    constants: dict[str, Array] = {
        "sx": np.float32(0.02), "zx": np.array(7, kind), "sy": np.float32(0.3), "zy": np.array(100, kind),
        "w": drawn(random, "int8", (filters, channels // groups, window, window)),
        "sw": random.uniform(0.001, 0.01, filters).astype(np.float32), "zw": np.zeros(filters, np.int8),
        "b": random.integers(-9000, 9000, filters).astype(np.int32),
    }  # fmt: skip
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], group=groups, strides=[stride] * 2, pads=[window // 2] * 4)
    convolution = model([node], {"x": x}, constants, "y", KINDS[kind])
    session = onnxruntime.InferenceSession(convolution.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    plan = smartmem_rules.optimize(convolution, device="pocl")
    np.testing.assert_array_equal(plan.run({"x": x})["y"], expected)


def test_a_quantized_model_is_one_of_integers() -> None:
    """Dequantized weights, a bias, and a quantizer behind the product: sums are exact, and rounded once."""
    random = np.random.default_rng(3)
    x = random.standard_normal((9, 40)).astype(np.float32)
    scales = random.uniform(0.001, 0.01, 24).astype(np.float32)
    constants: dict[str, Array] = {
        "sx": np.float32(0.03), "zx": np.array(128, np.uint8), "sy": np.float32(0.05), "zy": np.array(99, np.uint8),
        "w": drawn(random, "int8", (40, 24)), "sw": scales, "zw": np.zeros(24, np.int8),
        "b": random.integers(-900, 900, 24).astype(np.int32), "sb": scales * np.float32(0.03),
        "zb": np.zeros(24, np.int32),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=1),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bd"], axis=0),
        helper.make_node("Gemm", ["xd", "wd", "bd"], ["g"], alpha=1.0, beta=1.0),
        helper.make_node("QuantizeLinear", ["g", "sy", "zy"], ["y"]),
    ]
    written = model(nodes, {"x": x}, constants, "y", TensorProto.UINT8)
    plan = smartmem_rules.optimize(written, device="pocl")
    session = onnxruntime.InferenceSession(written.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(plan.run({"x": x})["y"], session.run(None, {"x": x})[0])


def test_packed_bytes_have_a_sign() -> None:
    elements = np.array([[[0, 255], [3, 4], [5, 6]]], np.uint8)
    packed = packed_bytes(elements, np.array([[100, 7]]), 4)
    assert packed.words.shape == (1, 1, 1, 4)
    assert packed.zeros is not None
    np.testing.assert_array_equal(packed.zeros[0, 0], [-28, -121, 0, 0])
    signed = packed.words.view(np.int8).reshape(4, 4)
    np.testing.assert_array_equal(signed[0], [-128, -125, -123, 0])
    np.testing.assert_array_equal(packed.sums[0, 0], [-376 + 3 * 28, 127 - 124 - 122 + 3 * 121, 0, 0])
