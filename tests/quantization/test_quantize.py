"""`quantize`: the models that it writes compute what their weights say, on ONNX Runtime and in our kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.quantization.options import CODES, Options, QuantizeError
from smartmem_rules.quantization.quantize import Trial, quantize_model
from smartmem_rules.quantization.rounding import rounded
from tests.plan.models import Array, normal
from tests.quantization.models import perceptron, ran

pytestmark = pytest.mark.sampled(2)

X = {"x": normal(5, 96, seed=9)}


def expected(model: onnx.ModelProto, options: Options) -> Array:
    """The perceptron in double precision, over what the weights are rounded to."""
    held = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    u = rounded(held["u"], options.code, options.block, "float32").values
    # the operator's weights take in the factor of the product
    v = rounded(held["v"].T * np.float32(2), options.code, options.block, "float32").values
    h = np.maximum(X["x"].astype(np.float64) @ u, 0)
    y: Array = (h @ v + held["c"]) @ held["s"]
    return y


@pytest.mark.covering
@pytest.mark.parametrize(("form", "block"), [("matmulnbits", 32), ("qdq", 32), ("qdq", 0)])
@pytest.mark.parametrize("weights", CODES)
def test_a_quantized_model_computes_with_its_rounded_weights(form: str, weights: str, block: int) -> None:
    options = Options(weights=weights, block=block, form=form)
    model = perceptron()
    made, report = quantize_model(model, options, Trial(given=X, dims={"rows": 5}))
    onnx.checker.check_model(made)
    exact = expected(model, options)
    near = 2e-6 * np.abs(exact).max()
    np.testing.assert_allclose(ran(made, X["x"]), exact, rtol=0, atol=near)
    plan = sm.optimize(made, dims={"rows": 5})
    np.testing.assert_allclose(plan.run(X)["y"], exact, rtol=0, atol=near)
    assert [layer.node for layer in report.layers] == ["first", "second"]
    assert list(report.left) == ["small"]
    assert report.random_inputs == ()


def test_errors_are_those_of_the_outputs() -> None:
    model = perceptron()
    made, report = quantize_model(model, Options(), Trial(given=X, dims={"rows": 5}))
    y, found = ran(model, X["x"]), ran(made, X["x"])
    (output,) = report.outputs
    assert output.relative == pytest.approx(np.linalg.norm(found - y) / np.linalg.norm(y), rel=1e-3)
    assert output.largest == pytest.approx(np.abs(found - y).max() / np.abs(y).max(), rel=1e-3)
    u = numpy_helper.to_array(model.graph.initializer[0])
    lost = rounded(u, CODES["int4"], 32, "float32").values - u
    (first, _) = report.layers
    assert first.weight_error == pytest.approx(np.linalg.norm(lost) / np.linalg.norm(u), rel=1e-5)
    assert first.output_error == pytest.approx(np.linalg.norm(X["x"] @ lost) / np.linalg.norm(X["x"] @ u), rel=1e-4)
    assert first.bytes_after < 0.2 * first.bytes_before


def test_more_bits_lose_less() -> None:
    errors = [
        quantize_model(perceptron(), Options(weights=weights), Trial(given=X, dims={"rows": 5}))[1].outputs[0].relative
        for weights in ("int4", "uint4", "int8")
    ]
    assert errors[0] > errors[1] > 10 * errors[2]


def test_the_given_model_stays_as_it_is() -> None:
    model = perceptron()
    before = model.SerializeToString()
    made = sm.quantize(model)
    assert model.SerializeToString() == before
    assert {node.op_type for node in made.graph.node} == {"MatMulNBits", "Relu", "Add", "MatMul"}


def test_a_weight_that_others_read_stays_and_is_stored_once_for_all_products() -> None:
    model = perceptron()
    again = helper.make_node("MatMul", ["x", "u"], ["again"], "again")
    other = helper.make_node("Relu", ["u"], ["table"], "table")
    model.graph.node.extend([again, other])
    model.graph.output.extend([onnx.ValueInfoProto(name="again"), onnx.ValueInfoProto(name="table")])
    made, report = quantize_model(model, Options(), None)
    names = [one.name for one in made.graph.initializer]
    assert "u" in names
    assert names.count("u_int4") == 1
    assert {layer.node for layer in report.layers} == {"first", "second", "again"}
    assert all(layer.output_error is None for layer in report.layers)


def test_half_precision_keeps_its_type() -> None:
    held = {"u": normal(96, 72).astype(np.float16)}
    node = helper.make_node("MatMul", ["x", "u"], ["y"], "first")
    graph = helper.make_graph(
        [node],
        "halves",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, [5, 96])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT16, [5, 72])],
        [numpy_helper.from_array(held["u"], "u")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = sm.quantize(model)
    x = normal(5, 96).astype(np.float16)
    exact = x.astype(np.float64) @ rounded(held["u"].astype(np.float32), CODES["int4"], 32, "float16").values
    np.testing.assert_allclose(ran(made, x).astype(np.float64), exact, rtol=0, atol=4e-3 * np.abs(exact).max())
    found = sm.optimize(made).run({"x": x})["y"].astype(np.float64)
    np.testing.assert_allclose(found, exact, rtol=0, atol=4e-3 * np.abs(exact).max())


def embedded(rows: int = 300, length: int = 40) -> onnx.ModelProto:
    """y = table[ids]."""
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"], "read")],
        "embedded",
        [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [2, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3, length])],
        [numpy_helper.from_array(normal(rows, length), "table")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("weights", CODES)
def test_rows_of_a_table_are_unpacked_where_they_are_read(weights: str) -> None:
    model, ids = embedded(), np.array([[0, 299, 7], [3, 150, 42]])
    options = Options(weights=weights)
    made, report = quantize_model(model, options, Trial(given={"ids": ids}, dims={}))
    table = numpy_helper.to_array(model.graph.initializer[0])
    values = rounded(table.T, options.code, 32, "float32").values.T
    exact = values[ids]
    plan = sm.optimize(made)
    np.testing.assert_allclose(plan.run({"ids": ids})["y"], exact, rtol=0, atol=1e-6)
    (layer,), (output,) = report.layers, report.outputs
    assert layer.output_error == pytest.approx(output.relative, rel=1e-4)
    stored = {one.storage for one in plan.plan.tensors.values() if one.role == "constant"}
    assert stored == {"uint8", "float32"}


def test_tables_that_have_no_form_are_left_with_the_reason() -> None:
    for options, reason in (
        (Options(tables=False), "tables stay as they are"),
        (Options(form="qdq"), "DequantizeLinear would unpack all of the table"),
    ):
        with pytest.raises(QuantizeError, match=reason):
            quantize_model(embedded(), options, None)
    with pytest.raises(QuantizeError, match="a row fills no whole bytes"):
        quantize_model(embedded(length=41), Options(), None)


# --- what cannot be quantized ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(weights="int3"), "there are no weights 'int3'; did you mean"),
        (Options(form="gguf"), "there is no form 'gguf'"),
        (Options(block=24), "a block of 24 weights: MatMulNBits takes powers of two from 16 on"),
        (Options(block=0), "a block of 0 weights: MatMulNBits"),
        (Options(block=-1, form="qdq"), "a block of -1 weights"),
        (Options(exclude=["frist"]), "there is no node 'frist' to exclude; did you mean `first`?"),
        (Options(least=100_000), "no product that could be quantized"),
    ],
)
def test_options_that_no_model_can_have(options: Options, message: str) -> None:
    with pytest.raises(QuantizeError, match=message.replace("?", r"\?")):
        quantize_model(perceptron(), options, None)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(value: float) -> None:
    u = normal(96, 72)
    u[3, 4] = value
    with pytest.raises(QuantizeError, match="the weight 'u' of 'first' has 1 elements that are infinite or NaN"):
        quantize_model(perceptron({"u": u}), Options(), None)
    _, report = quantize_model(perceptron({"u": u}), Options(exclude=["first"]), None)
    assert [layer.node for layer in report.layers] == ["second"]
    assert report.left["first"] == "it is excluded"


def test_products_that_the_operator_has_no_place_for_are_left(tmp_path: Path) -> None:
    model = perceptron()
    model.graph.node[2].attribute.append(helper.make_attribute("beta", 0.5))
    _, report = quantize_model(model, Options(), None)
    assert "beta" in report.left["second"]
    made, report = quantize_model(model, Options(form="qdq"), None)
    assert "second" not in report.left
    onnx.checker.check_model(made)
