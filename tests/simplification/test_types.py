"""The precision of what a model gives is that of the least precise type on the way to it."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from smartmem_rules.simplification.types import precisions_of

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(float[2] x) => (float[2] y) { y = Exp(x) }", "float32"),
        ("(float[2] x) => (float[2] y) { h = Cast <to = 10> (x) e = Exp(h) y = Cast <to = 1> (e) }", "float16"),
        ("(double[2] x) => (double[2] y) { h = Cast <to = 16> (x) e = Exp(h) y = Cast <to = 11> (e) }", "bfloat16"),
        ("(double[2] x, double[2] w) => (double[2] y) { y = LayerNormalization (x, w) }", "float32"),
        ("(double[2] x, double[2] w) => (double[2] y) { y = LayerNormalization <stash_type = 11> (x, w) }", "float64"),
        ("(int64[2] x) => (int64[2] y) { y = Neg(x) }", None),
        ("(float16[2] x) => (int64[1] y) { y = ArgMax(x) }", "float16"),
        (
            "(bool c, double[2] x, float16[2] h) => (double[2] y) { y = If (c) <"
            "then_branch = then () => (double[2] a) { a = Cast <to = 11> (h) },"
            "else_branch = other () => (double[2] b) { b = Identity(x) }> }",
            "float16",
        ),
    ],
)
def test_the_least_precise_type_on_the_way(text: str, wanted: str | None) -> None:
    model = parser.parse_model(f"{HEAD} tested {text}")
    assert precisions_of(model).get("y") == wanted


def test_types_that_are_not_of_onnx_are_left_out() -> None:
    model = parser.parse_model(f"{HEAD} tested (float[2] x) => (float[2] y) {{ y = Exp(x) }}")
    model.graph.output[0].type.tensor_type.elem_type = 99
    model.graph.value_info.append(onnx.helper.make_empty_tensor_value_info("z"))
    assert precisions_of(model).get("x") == "float32"
