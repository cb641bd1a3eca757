"""Powers with integer exponents, against integers of Python."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import helper

import smartmem_rules as sm

BASES: dict[str, list[float]] = {
    "float32": [-0.0, 0.0, -1, 1, -2, 3, -math.inf, math.inf, math.nan, -0.5, 7],
    "float64": [-0.0, 0.0, -1, 1, -2, 3, -math.inf, math.inf, math.nan, -0.5, 7],
    "int32": [0, -1, 1, -2, 3, 46341, 2**31 - 1, -(2**31)],
}
EXPONENTS = [0, 1, 2, -1, -3, 31, 64, 2**24 + 1, 2**31 - 1, 2**31 - 2, 2**32, 2**32 + 1, 2**53 + 1, 2**63 - 1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("exponent", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("base", BASES)
def test_the_parity_of_an_exponent_is_that_of_the_integer(base: str, exponent: str) -> None:
    limits = np.iinfo(exponent)
    given: list[int] = [e for e in EXPONENTS if limits.min <= e <= limits.max and (e >= 0 or base != "int32")]
    pairs = [(b, e) for b in BASES[base] for e in given]
    feeds = {"a": np.array([b for b, _ in pairs], base), "b": np.array([e for _, e in pairs], exponent)}
    result = sm.optimize(_model(base, exponent, len(pairs))).run(feeds)["y"]
    exact = np.array([_power(b, e) if base == "int32" else _real_power(b, e) for b, e in pairs])
    with np.errstate(over="ignore"):
        expected = exact.astype(base)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def _model(base: str, exponent: str, elements: int) -> onnx.ModelProto:
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (base, exponent)]
    inputs = [helper.make_tensor_value_info(n, t, [elements]) for n, t in zip("ab", types, strict=True)]
    output = helper.make_tensor_value_info("y", types[0], [elements])
    graph = helper.make_graph([helper.make_node("Pow", ["a", "b"], ["y"])], "powers", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _power(base: float, exponent: int) -> int:
    """What is left of an integer power in 32 bits."""
    return (pow(int(base), exponent, 2**32) + 2**31) % 2**32 - 2**31


def _real_power(base: float, exponent: int) -> float:
    try:
        size = math.pow(abs(base), exponent)
    except (OverflowError, ValueError):  # 0 to a negative power among them
        size = math.inf
    return -size if math.copysign(1, base) < 0 and exponent % 2 else size


@pytest.mark.parametrize("exponent", ["float32", "float16", "float64"])
@pytest.mark.parametrize("base", ["int32", "int64", "uint32", "int16"])
def test_a_large_integer_keeps_its_digits_with_an_exponent_in_floats(base: str, exponent: str) -> None:
    most = {"int16": 2**15 - 1, "int64": 2**53 - 1}.get(base, np.iinfo(base).max)
    numbers = [most, most, 2049, 181, 7, -3 if base != "uint32" else 3, most]
    exponents = [1, 0, 1, 2, 0.5, 3, -1]
    feeds = {"a": np.array(numbers, base), "b": np.array(exponents, exponent)}
    result = sm.optimize(_model(base, exponent, len(numbers))).run(feeds)["y"]
    expected = [most, 1, 2049, 181**2, 2, numbers[5] ** 3, 0]
    np.testing.assert_array_equal(result, np.array(expected, base))
