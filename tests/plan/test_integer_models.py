"""Models between DequantizeLinear and QuantizeLinear, computed in integers, beside ONNX Runtime."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules

pytestmark = pytest.mark.sampled(8)

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Quantized:
    """A model in the making, with a quantizer behind every operator, as static quantizers write it."""

    kind: str
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def activation(self, name: str, x: str, scale: float | str) -> str:
        """x, quantized by a scale and a zero point of its own, or those of another tensor, and dequantized."""
        given = [f"{scale}.scale", f"{scale}.zero"]
        if isinstance(scale, float):
            zero = np.array(np.iinfo(self.kind).min + int(self.random.integers(90, 160)), self.kind)
            given = [self.constant(f"{name}.scale", np.float32(scale)), self.constant(f"{name}.zero", zero)]
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *given], [f"{name}.q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}.q", *given], [name]))
        return name

    def weight(self, name: str, shape: tuple[int, ...], axis: int | None, scale: float = 0.02) -> tuple[str, Array]:
        """A weight of int8, dequantized, with one scale or one for each place along an axis; and its scales."""
        size = () if axis is None else (shape[axis],)
        scales = self.random.uniform(scale / 2, scale, size).astype(np.float32)
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        names = [
            self.constant(f"{name}.{part}", value)
            for part, value in (("q", values), ("scale", scales), ("zero", np.zeros(size, np.int8)))
        ]
        along = {} if axis is None else {"axis": axis}
        self.nodes.append(helper.make_node("DequantizeLinear", names, [name], **along))
        return name, scales

    def bias(self, name: str, count: int, scales: Array) -> str:
        """A bias of int32, dequantized."""
        values = self.random.integers(-4000, 4000, count).astype(np.int32)
        names = [
            self.constant(f"{name}.q", values),
            self.constant(f"{name}.scale", scales),
            self.constant(f"{name}.zero", np.zeros(scales.shape, np.int32)),
        ]
        along = {"axis": 0} if scales.ndim else {}
        self.nodes.append(helper.make_node("DequantizeLinear", names, [name], **along))
        return name

    def node(self, operator: str, *inputs: str, scale: float | str, **attributes: Any) -> str:
        """An operator with a quantizer behind it."""
        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [f"{name}.y"], **attributes))
        return self.activation(f"{name}.a", f"{name}.y", scale)

    def model(self, shape: tuple[int, ...], output: str) -> onnx.ModelProto:
        """The model from `x` to the integers of its last quantizer."""
        last = output.removesuffix(".a") + ".a.q"
        self.nodes = [node for node in self.nodes if node.output[0] != output]
        type_ = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        graph = helper.make_graph(
            self.nodes,
            "quantized",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(last, type_, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def block(made: Quantized, axis: int | None, biased: bool) -> str:
    """A residual block: convolutions with and without bias, one of them of single channels, pooled and multiplied."""
    x = made.activation("input", "x", 0.03)

    def convolved(x: str, step: float, name: str, shape: tuple[int, ...], scale: float, **how: Any) -> str:
        w, scales = made.weight(f"{name}.w", shape, axis)
        b = [made.bias(f"{name}.b", shape[0], np.float32(step) * scales)] if biased else []
        return made.node("Conv", x, w, *b, scale=scale, **how)

    a = convolved(x, 0.03, "first", (16, 8, 1, 1), 0.05)
    b = convolved(a, 0.05, "second", (16, 1, 3, 3), 0.06, group=16, pads=[1, 1, 1, 1])
    c = convolved(b, 0.06, "third", (8, 16, 3, 3), 0.11, pads=[1, 1, 1, 1])
    summed = made.node("Add", x, c, scale=0.12)
    pooled = made.node("MaxPool", summed, scale=summed, kernel_shape=[2, 2], strides=[2, 2])
    return made.node("GlobalAveragePool", pooled, scale=0.02)


def perceptron(made: Quantized, axis: int | None, biased: bool) -> str:
    """Products of matrices, with and without bias, and what stands between them in a transformer."""
    x = made.activation("input", "x", 0.03)
    w, _ = made.weight("w", (24, 24), axis)
    left = made.node("MatMul", x, w, scale=0.08)
    turned = made.node("Transpose", left, scale=left, perm=[1, 0])
    scores = made.node("MatMul", x, turned, scale=0.25)
    shares = made.node("Softmax", scores, scale=1 / 256, axis=-1)
    mixed = made.node("MatMul", shares, x, scale=0.0283)
    product = made.node("Mul", mixed, x, scale=0.05)
    v, scales = made.weight("v", (24, 32), axis)
    b = [made.bias("b", 32, np.float32(0.05) * scales)] if biased else []
    return made.node("Gemm", product, v, *b, scale=0.05)


BLOCK = {"sum_of_integers", "on_integers.MaxPool", "mean_of_integers"}
PERCEPTRON = {
    "product_of_integers", "elementwise_product_of_integers", "softmax_of_integers", "on_integers.Transpose",
}  # fmt: skip
BIASED = {
    (4, False): "convolution_of_integers",
    (4, True): "biased_convolution_of_integers",
    (2, False): "unbiased_gemm_of_integers",
    (2, True): "gemm_of_integers",
}
CASES = [(kind, axis, biased) for kind in ("uint8", "int8") for axis in (None, 0) for biased in (False, True)]


@pytest.mark.parametrize(("kind", "axis", "biased"), CASES)
@pytest.mark.parametrize("shape", [(2, 8, 14, 14), (24, 24)], ids=["block", "perceptron"])
def test_integers_are_those_of_onnxruntime(shape: tuple[int, ...], kind: str, axis: int | None, biased: bool) -> None:
    random = np.random.default_rng(len(shape) + biased)
    made = Quantized(kind, random)
    output = block(made, axis, biased) if len(shape) == 4 else perceptron(made, None if axis is None else 1, biased)
    model = made.model(shape, output)
    x = random.standard_normal(shape).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})[0]
    plan = smartmem_rules.optimize(model, device="pocl")
    (actual,) = plan.run({"x": x}).values()
    np.testing.assert_array_equal(actual, expected)
    fired = {counts.rule for counts in plan.plan.statistics.rewriting.rules if counts.fired}
    assert fired >= (BLOCK if len(shape) == 4 else PERCEPTRON) | {BIASED[len(shape), biased]}


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_sums_of_integers_round_as_those_of_onnxruntime(kind: str) -> None:
    """About 5 of 100,000 elements lie so near to one half that one rounding more decides them."""
    random, limits = np.random.default_rng(7), np.iinfo(kind)
    shape, type_ = (1000, 100), helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    for _ in range(3):
        scales = random.uniform(0.01, 0.1, 3).astype(np.float32)
        a, b = random.integers(limits.min, limits.max + 1, (2, *shape)).astype(kind)
        zeros = random.integers(limits.min, limits.max + 1, 3).astype(kind)
        names = ["sa", "za", "sb", "zb", "sy", "zy"]
        constants = [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in zip(names, (x for pair in zip(scales, zeros, strict=True) for x in pair), strict=True)
        ]
        given = ["a", *names[:2], "b", *names[2:]]
        graph = helper.make_graph(
            [helper.make_node("QLinearAdd", given, ["y"], domain="com.microsoft")],
            "sum",
            [helper.make_tensor_value_info(name, type_, shape) for name in "ab"],
            [helper.make_tensor_value_info("y", type_, shape)],
            constants,
        )
        imports = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        actual = smartmem_rules.optimize(model, device="pocl").run({"a": a, "b": b})["y"]
        np.testing.assert_array_equal(actual, session.run(None, {"a": a, "b": b})[0])


def test_a_batch_may_be_open() -> None:
    random = np.random.default_rng(2)
    made = Quantized("uint8", random)
    model = made.model((2, 8, 14, 14), block(made, 0, biased=True))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    plan = smartmem_rules.optimize(model, device="pocl", dims={"n": (1, 4)})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for count in (1, 3):
        x = random.standard_normal((count, 8, 14, 14)).astype(np.float32)
        (actual,) = plan.run({"x": x}).values()
        np.testing.assert_array_equal(actual, session.run(None, {"x": x})[0])


def test_an_image_is_not_quantized_again_for_every_window() -> None:
    made = Quantized("uint8", np.random.default_rng(4))
    x = made.activation("input", "x", 0.03)
    w, _ = made.weight("w", (16, 3, 3, 3), 0)
    model = made.model((1, 3, 384, 384), made.node("Conv", x, w, scale=0.05, pads=[1, 1, 1, 1], strides=[2, 2]))
    plan = smartmem_rules.optimize(model, device="pocl", disable=["one_after_another"])
    assert len(plan.kernels) == 2


@pytest.mark.parametrize(("count", "bias"), [(40000, None), (64, 2**31 - 1), (64, -(2**31))])
def test_sums_beyond_32_bits_stay_floats(count: int, bias: int | None) -> None:
    made, scale = Quantized("uint8", np.random.default_rng(1)), float(2**24)
    zero, step = made.constant("zero", np.uint8(128)), made.constant("step", np.float32(scale))
    one, least = made.constant("one", np.float32(1)), made.constant("least", np.uint8(0))
    sign = -1 if bias is not None and bias < 0 else 1
    weights = np.full((count, 2), 255 if sign > 0 else 1, np.uint8)
    factor = made.constant("w", weights), one, made.constant("wz", np.uint8(0 if sign > 0 else 255))
    made.nodes += [helper.make_node("DequantizeLinear", ["x", one, least], ["a"])]
    made.nodes += [helper.make_node("DequantizeLinear", factor, ["b"])]
    operands = ["a", "b"]
    if bias is not None:
        given = made.constant("c", np.full(2, bias, np.int32)), one, made.constant("cz", np.int32(0))
        made.nodes += [helper.make_node("DequantizeLinear", given, ["d"])]
        operands.append("d")
    made.nodes += [helper.make_node("Gemm" if bias is not None else "MatMul", operands, ["m"])]
    made.nodes += [helper.make_node("QuantizeLinear", ["m", step, zero], ["y"])]
    types = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in (("x", (1, count)), ("y", (1, 2)))]
    graph = helper.make_graph(made.nodes, "long", types[:1], types[1:], made.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    exact = count * 255 * (255 if sign > 0 else -254) + (bias or 0)
    actual = smartmem_rules.optimize(model, device="pocl").run({"x": np.full((1, count), 255, np.uint8)})["y"]
    np.testing.assert_array_equal(actual, np.full((1, 2), np.clip(round(exact / scale) + 128, 0, 255), np.uint8))


@pytest.mark.parametrize("along", [False, True], ids=["tensor", "channels"])
@pytest.mark.parametrize("form", ["Conv", "Conv and bias", "Gemm", "turned Gemm", "MatMul"])
def test_models_of_quantization_aware_training_are_computed_in_integers(form: str, along: bool) -> None:
    """Weights are floats between quantizers, biases stay floats, and another operator stands before the quantizer."""
    random = np.random.default_rng(len(form) + along)
    made = Quantized("uint8", random)
    images = form.startswith("Conv")
    shape, size = ((2, 8, 9, 9), (24, 8, 3, 3)) if images else ((5, 40), (40, 24))
    size = size[::-1] if form == "turned Gemm" else size
    axis = 0 if images or form == "turned Gemm" else 1
    floats = random.standard_normal(size).astype(np.float32) * np.float32(0.1)
    scales = np.abs(floats).max(axis=tuple(n for n in range(len(size)) if n != axis or not along)) / np.float32(127)
    names = [made.constant("step", scales), made.constant("zero", np.zeros(scales.shape, np.int8))]
    x = made.activation("input", "x", 0.03)
    for operator, given, name in (("Quantize", made.constant("floats", floats), "q"), ("Dequantize", "q", "w")):
        how = {"axis": axis} if along else {}
        made.nodes.append(helper.make_node(f"{operator}Linear", [given, *names], [name], **how))
    bias = made.constant("bias", random.standard_normal(24).astype(np.float32) * np.float32(0.1))
    biased = form in ("Conv and bias", "Gemm", "turned Gemm")
    more = {"transB": 1} if form == "turned Gemm" else {"pads": [1, 1, 1, 1]} if images else {}
    operator = form.split()[-1] if form == "turned Gemm" else form.split()[0]
    made.nodes.append(helper.make_node(operator, [x, "w", *([bias] if biased else [])], ["product"], **more))
    if form == "MatMul":
        made.nodes.append(helper.make_node("Add", [bias, "product"], ["sum"]))
    made.nodes.append(helper.make_node("Relu", ["sum" if form == "MatMul" else "product"], ["positive"]))
    model = made.model(shape, made.activation("y.a", "positive", 0.01))
    given = random.standard_normal(shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": given})[0].astype(np.int64)
    plan = smartmem_rules.optimize(model, device="pocl")
    (actual,) = plan.run({"x": given}).values()
    assert np.count_nonzero(actual - expected) <= actual.size / 1000
    assert np.abs(actual - expected).max() <= 1
    assert len(np.unique(expected)) > 20
    held = [one for one in plan.plan.tensors.values() if one.role == "constant" and one.type.dtype == "float32"]
    assert all(math.prod(one.type.shape) <= 24 for one in held)
