"""Every primitive of the language, in every dtype, at special values: the interpreter's result is the device's.

Both are definitions of the same thing: constants are folded by the one, everything else is computed by the other.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from smartmem_rules.tensor import primitives
from smartmem_rules.tensor.definitions.elements import BINARY, UNARY
from smartmem_rules.tensor.primitives import compute_dtype
from tests.numerics import special
from tests.numerics.device_functions import WIDTHS, Array, in_registers, run_primitive, ulps
from tests.numerics.test_elementary import FUNCTIONS

pytestmark = pytest.mark.sampled(8)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
WHOLE = ("abs", "neg", "sign", "floor", "ceil", "round")
"""Functions of one number that integers have as well."""
ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "mod", "fmod", "min", "max", "pow")
BITS = ("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")


def interpreted(function: str, operands: list[Array], dtype: str) -> Array:
    with np.errstate(all="ignore"):
        return primitives.apply(function, tuple(operands), dtype)


def differing(found: Array, wanted: Array, bound: float, least: float = 0.0) -> Array:
    """Places where results differ; zeros of either sign are equal."""
    if found.dtype.kind != "f":
        return np.asarray(found != wanted)
    with np.errstate(invalid="ignore"):
        near = np.abs(found.astype(np.float64) - wanted) <= least
    return np.asarray((ulps(found, wanted.astype(np.float64), found.dtype.name) > bound) & ~near)


def check(
    function: str, operands: list[Array], dtypes: list[str], result: str, bound: float = 0.0, least: float = 0.0
) -> None:
    held = list(special.whole_vectors(*operands))
    vectors = all(dtype == "float32" for dtype in (*dtypes, result)) and function not in ("mod", "fmod")
    wanted = in_registers(interpreted(function, held, result).astype(compute_dtype(result)), result)
    for width in WIDTHS if vectors else (1,):
        found = run_primitive(function, held, dtypes, result, width)
        wrong = differing(found, wanted, bound, least)
        place = int(np.argmax(wrong))
        shown = ", ".join(repr(array[place]) for array in held)
        assert not wrong.any(), f"{function}({shown}) is {found[place]!r} on the device, {wanted[place]!r} interpreted"


def test_all_primitives_are_here() -> None:
    assert {*FUNCTIONS, "neg"} == UNARY
    assert set(ARITHMETIC) | set(BITS) >= BINARY


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_of_floats(name: str, dtype: str) -> None:
    known = FUNCTIONS.get(name)
    bound, least = (0.0, 0.0) if known is None else (known.bound + 1.0 if known.bound else 0.0, known.least)
    if known is not None and dtype == "float64":
        bound, least = (8.0 if known.bound else 0.0), 0.0
    check(name, [special.floats(dtype)], [dtype], dtype, bound, least)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", WHOLE)
def test_functions_of_integers(name: str, dtype: str) -> None:
    values = special.integers(dtype)
    wanted = interpreted(name, [values], dtype)
    found = run_primitive(name, [values], [dtype], dtype)
    np.testing.assert_array_equal(found.astype(dtype), wanted.astype(dtype))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name: str, dtype: str) -> None:
    a, b = special.pairs(special.values(dtype), special.values(dtype))
    check(name, [a, b], [dtype, dtype], dtype, {"pow": 2.0}.get(name, 0.0))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", BITS)
def test_bits(name: str, dtype: str) -> None:
    a, b = special.pairs(special.values(dtype), special.values(dtype))
    check(name, [a, b], [dtype, dtype], dtype)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", TESTS)
def test_comparisons(name: str, dtype: str) -> None:
    a, b = special.pairs(special.values(dtype), special.values(dtype))
    check(name, [a, b], [dtype, dtype], "bool")


@pytest.mark.sampled(16)
@pytest.mark.parametrize("target", [*FLOATS, "float16", "bfloat16", *INTEGERS, "bool"])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
def test_casts(source: str, target: str) -> None:
    values = special.values(source)
    with np.errstate(all="ignore"):
        wanted = primitives.cast(values, target)
    found = run_primitive("cast", [values], [source], target)
    wrong = differing(found, in_registers(wanted, target), 0.0)
    place = int(np.argmax(wrong))
    assert not wrong.any(), f"{values[place]!r} is {found[place]!r} on the device, {wanted[place]!r} interpreted"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["isnan", "isinf"])
def test_tests_of_floats(name: str, dtype: str) -> None:
    check(name, [special.floats(dtype)], [dtype], "bool")


def triples() -> list[Array]:
    """Numbers of single precision: of any bits, and products that an addend nearly takes away."""
    random = np.random.default_rng(1)
    a, b, c = random.integers(0, 2**32, (3, 4096), dtype=np.uint32).view(np.float32)
    near, other = random.uniform(0.5, 2.0, (2, 4096)).astype(np.float32)
    ulps_off = random.integers(-2, 3, 4096).astype(np.float32) * np.float32(2.0**-25)
    with np.errstate(all="ignore"):
        taken = [near, other, -(near * other) * (1 + ulps_off)]
        return [np.concatenate(pair) for pair in zip((a, b, c), taken, strict=True)]


def test_a_fused_multiply_add_is_that_of_the_device() -> None:
    check("fma", triples(), ["float32"] * 3, "float32")


def test_a_fused_multiply_add_is_rounded_once() -> None:
    operands = triples()
    found = interpreted("fma", operands, "float32")
    finite = np.isfinite(found) & (np.abs(found) > 1e-30) & np.isfinite(operands).all(0)
    for a, b, c, result in zip(*(array[finite].tolist() for array in (*operands, found)), strict=True):
        exact, nearest = Fraction(a) * Fraction(b) + Fraction(c), np.float32(result)
        for way in (np.inf, -np.inf):
            beside = np.nextafter(nearest, np.float32(way))
            if np.isfinite(beside):
                assert abs(exact - Fraction(result)) <= abs(exact - Fraction(float(beside)))
