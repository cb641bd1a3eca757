"""Quantised models that cannot be: each gives one message with the node, the tensor or its shape, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.tensor.primitives import Array

BASE = load_rules()
NAN, INF = float("nan"), float("inf")
CONTRIBUTED = ("MatMulNBits", "GatherBlockQuantized", "QLinearConcat")
TYPES = {np.dtype(t): helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (np.float32, np.uint8, np.int64)}


def model(
    operator: str, operands: list[str], constants: Mapping[str, Array], given: Mapping[str, Array], **attributes: Any
) -> onnx.ModelProto:
    """One node, named `node`; operands that are no constants are inputs of the type and shape of what is given."""
    domain = "com.microsoft" if operator in CONTRIBUTED else ""
    node = helper.make_node(operator, operands, ["y"], name="node", domain=domain, **attributes)
    inputs = [helper.make_tensor_value_info(name, TYPES[one.dtype], one.shape) for name, one in given.items()]
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    output = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([node], "g", inputs, [output], stored)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def scales(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def dequantize(scale: Array, zero: Array | None = None, **attributes: Any) -> onnx.ModelProto:
    kind = np.int8 if zero is None else zero.dtype
    constants = {"w": np.ones((8, 6), kind), "s": scale} | ({} if zero is None else {"z": zero})
    return model("DequantizeLinear", [*constants], constants, {}, **attributes)


def quantize(scale: float) -> onnx.ModelProto:
    constants = {"s": np.float32(scale).reshape(()), "z": np.array(3, np.uint8)}
    return model("QuantizeLinear", ["x", "s", "z"], constants, {"x": np.ones((2, 8), np.float32)})


def quantized_convolution(**given: Array) -> onnx.ModelProto:
    number, zero = np.float32(0.1).reshape(()), np.array(0, np.uint8)
    constants = {"sx": number, "zx": zero, "w": np.ones((4, 3, 1, 1), np.int8), "sw": number}
    constants |= {"zw": np.array(0, np.int8), "sy": number, "zy": zero, **given}
    return model("QLinearConv", ["x", *constants], constants, {"x": np.ones((1, 3, 4, 4), np.uint8)})


def blocks(given: Mapping[str, Array] | None = None, **attributes: Any) -> onnx.ModelProto:
    """A product of 64 rows and 8 columns of 4 bits, in blocks of 32."""
    constants = {"w": np.full((8, 2, 16), 0x53, np.uint8), "s": np.full((8, 2), 0.1, np.float32), **(given or {})}
    operands = ["x", "w", "s", *[name if name in constants else "" for name in ("z", "g")]]
    numbers = {"K": 64, "N": 8, "bits": 4, "block_size": 32, **attributes}
    return model("MatMulNBits", operands, constants, {"x": np.ones((2, 64), np.float32)}, **numbers)


def rows(given: Mapping[str, Array] | None = None, **attributes: Any) -> onnx.ModelProto:
    constants = {"w": np.ones((10, 32), np.uint8), "s": np.ones((10, 2), np.float32), **(given or {})}
    numbers = {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1, **attributes}
    return model("GatherBlockQuantized", ["w", "i", "s"], constants, {"i": np.array([3, 1])}, **numbers)


def changed(array: Array, place: tuple[int, ...], value: float) -> Array:
    made = array.copy()
    made[place] = value
    return made


def product(a: Array | None = None, b: Array | None = None) -> onnx.ModelProto:
    """A product of integers, [2, 8] by [8, 6], with zero points."""
    constants = {"w": np.ones((8, 6), np.uint8)} | {
        name: zero for name, zero in (("a", a), ("b", b)) if zero is not None
    }
    operands = ["x", "w", *[name if name in constants else "" for name in ("a", "b")]]
    return model("MatMulInteger", operands, constants, {"x": np.ones((2, 8), np.uint8)})


def joined(first: float, second: float) -> onnx.ModelProto:
    """Two parts with scales."""
    zero, number = np.array(0, np.uint8), np.float32(0.1).reshape(())
    scaled = {"sa": np.float32(first).reshape(()), "za": zero, "sb": np.float32(second).reshape(()), "zb": zero}
    operands = ["sy", "zy", "x", "sa", "za", "x", "sb", "zb"]
    given = {"x": np.ones((2, 8), np.uint8)}
    return model("QLinearConcat", operands, {"sy": number, "zy": zero, **scaled}, given, axis=1)


def quantize_to(dtype: int) -> onnx.ModelProto:
    constants = {"s": scales(1)[0].reshape(()), "z": np.array(3, np.uint8)}
    given = {"x": np.ones((2, 8), np.float32)}
    return model("QuantizeLinear", ["x", "s", "z"], constants, given, output_dtype=dtype)


S = np.full((8, 2), 0.1, np.float32)
ORDINARY = "a scale must be a finite number other than 0; quantize the model again"
OF_BLOCKS = "the scale of a block must be a finite number; quantize the model again"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (dequantize(scales(NAN)), ["DequantizeLinear 'node'", "'s' is nan at [0]", ORDINARY]),
        (dequantize(scales(1, 1, 0, 1, 1, 1)), ["'s' is 0.0 at [2]", ORDINARY]),
        (dequantize(scales(1, 1, 1, 1, 1, INF)), ["'s' is inf at [5]", ORDINARY]),
        (dequantize(scales(1), np.full(1, 2, np.int32)), ["'z' is 2 at [0]", "no zero point but 0"]),
        (quantize(0.0), ["QuantizeLinear 'node'", "'s' is 0.0; ", ORDINARY]),
        (quantize(-0.0), ["'s' is -0.0; ", ORDINARY]),
        (quantize(NAN), ["'s' is nan; ", ORDINARY]),
        (quantized_convolution(sy=np.array(0, np.float32)), ["QLinearConv 'node'", "'sy' is 0.0; ", ORDINARY]),
        (quantized_convolution(sw=scales(1, 1, NAN, 1)), ["'sw' is nan at [2]", ORDINARY]),
        (joined(0.0, 0.1), ["QLinearConcat 'node'", ORDINARY]),
        (joined(0.1, NAN), ["QLinearConcat 'node'", ORDINARY]),
        (blocks({"s": changed(S, (3, 1), NAN)}), ["MatMulNBits 'node'", "'s' is nan at [3, 1]", OF_BLOCKS]),
        (blocks({"z": changed(S, (0, 1), INF)}), ["'z' is inf at [0, 1]", "a zero point must be a finite number"]),
        (blocks({"g": np.full(64, 2, np.int32)}), ["'g' is 2 at [0]", "must name one of the blocks of K"]),
        (blocks({"g": changed(np.zeros(64, np.int32), (7,), -1)}), ["'g' is -1 at [7]", "one of the blocks of K"]),
        (rows({"s": np.full((10, 2), NAN, np.float32)}), ["GatherBlockQuantized 'node'", "'s' is nan", OF_BLOCKS]),
    ],
)
def test_numbers_that_no_scale_can_be_are_named(broken: onnx.ModelProto, said: list[str]) -> None:
    with pytest.raises(GraphError) as error:
        import_model(broken, BASE, {})
    for part in said:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (dequantize(scales(1, 1, 1), axis=0), ["DequantizeLinear (node)", "one for each index of the axis"]),
        (dequantize(np.ones((3, 6), np.float32), axis=0, block_size=4), ["one for each block of it"]),
        (dequantize(scales(1), np.zeros(4, np.int8)), ["prod(K) == prod(Z)", "K is [1], Z is [4]"]),
        (blocks(block_size=0), ["MatMulNBits (node)", "requires block_size > 0", "block_size is 0"]),
        (blocks(block_size=24), ["W == [N, Q, B]", "B is 12, N is 8, Q is 3, W is [8, 2, 16]"]),
        (blocks(bits=3), ["contains([2, 4, 8], bits)", "bits is 3"]),
        (blocks(bits=8), ["W == [N, Q, B]", "B is 32, N is 8, Q is 2, W is [8, 2, 16]"]),
        (blocks(K=60), ["D == K", "D is 64, K is 60"]),
        (blocks({"s": np.ones((8, 3), np.float32)}), ["holds_blocks(SC, N, Q)", "SC is [8, 3]"]),
        (blocks({"z": np.zeros((8, 2), np.uint8)}), ["holds_blocks(ZP, N, Z)", "ZP is [8, 2]"]),
        (blocks({"g": np.zeros(60, np.int32)}), ["GI == [K]", "GI is [60]"]),
        (product(a=np.zeros(3, np.uint8)), ["MatMulInteger (node)", "fits(U, [I])", "U is [3]"]),
        (product(b=np.zeros(5, np.uint8)), ["MatMulInteger (node)", "fits(V, [J])", "V is [5]"]),
        (quantize_to(TensorProto.INT8), ["QuantizeLinear (node)", "output_dtype is int8"]),
        (rows(block_size=16), ["GatherBlockQuantized (node)", "SC == [N, G]", "SC is [10, 2]"]),
    ],
)
def test_packings_that_do_not_match_are_told_with_their_numbers(broken: onnx.ModelProto, said: list[str]) -> None:
    with pytest.raises(GraphError) as error:
        import_model(broken, BASE, {})
    for part in said:
        assert part in str(error.value)
    assert str(error.value).count("node)") == 1  # one message, not one for each overload


def test_blocks_of_zeros_alone_have_the_scale_zero() -> None:
    # ONNX Runtime's quantizer writes 0 or -0 for such blocks
    given = blocks({"s": changed(changed(S, (3, 1), 0.0), (4, 0), -0.0)})
    import_model(given, BASE, {})
    import_model(dequantize(np.zeros((2, 6), np.float32), axis=0, block_size=4), BASE, {})


def test_zero_points_of_rows_and_columns_fit() -> None:
    import_model(product(np.zeros(2, np.uint8), np.zeros(6, np.uint8)), BASE, {})
    import_model(product(np.zeros((), np.uint8), np.zeros(1, np.uint8)), BASE, {})
    import_model(joined(0.1, 0.2), BASE, {})
    import_model(quantize_to(TensorProto.UINT8), BASE, {})


def test_the_scale_of_a_bias_may_be_too_small_for_a_float() -> None:
    import_model(dequantize(scales(0), np.zeros(1, np.int32)), BASE, {})


def test_a_scale_that_is_computed_is_not_looked_at() -> None:
    scale = np.float32(0.1).reshape(())
    made = model("QuantizeLinear", ["x", "s"], {}, {"x": np.ones((2, 8), np.float32), "s": scale})
    assert len(import_model(made, BASE, {}).nodes) == 1


def test_other_models_run_after_one_was_refused() -> None:
    with pytest.raises(GraphError):
        sm.optimize(blocks({"s": changed(S, (3, 1), NAN)}))
    plan = sm.optimize(blocks())
    (found,) = plan.run({"x": np.ones((2, 64), np.float32)}).values()
    np.testing.assert_allclose(found, np.full((2, 8), 64 * (-4) * 0.1), rtol=1e-5)  # 32 weights of 3 - 8, 32 of 5 - 8
