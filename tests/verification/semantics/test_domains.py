"""The exact arithmetics and the error bounds that verdicts rest on."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from smartmem_rules.verification.semantics.bounded import PRECISION, Bounded
from smartmem_rules.verification.semantics.domains import Domain, PrimeField, Rationals, Undefined, exact_quotient
from smartmem_rules.verification.semantics.generic import SAME, Generic

SMALL = st.fractions(-50, 50, max_denominator=12)


@given(SMALL, SMALL)
def test_rationals_are_exact(a: Fraction, b: Fraction) -> None:
    domain = Rationals()
    one, other = (np.array(a, object),), (np.array(b, object),)
    for function, expected in (("add", a + b), ("sub", a - b), ("mul", a * b), ("min", min(a, b)), ("max", max(a, b))):
        assert domain.apply(function, (one, other), "float32")[0] == expected
    if b:
        assert domain.apply("div", (one, other), "float32")[0] == a / b


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_field_divides(a: int, b: int) -> None:
    domain = PrimeField()
    one, other = (np.array(a, np.int64),), (np.array(b, np.int64),)
    (quotient,) = domain.apply("div", (one, other), "float32")
    assert int(quotient) * b % domain.prime == a % domain.prime


def test_the_field_has_no_inverse_of_zero() -> None:
    with pytest.raises(Undefined):
        PrimeField().apply("recip", ((np.zeros(3, np.int64),),), "float32")


@given(st.floats(0.1, 20), st.floats(0.1, 20))
def test_error_bounds_hold(a: float, b: float) -> None:
    """Two ways to one number differ by no more than their bounds say."""
    domain = Bounded()
    x, y = ((np.array(v), np.array(0.0)) for v in (a, b))
    product = domain.apply("mul", (x, y), "float32")
    logs = [domain.apply("log", (v,), "float32") for v in (x, y)]
    around = domain.apply("exp", (domain.apply("add", (logs[0], logs[1]), "float32"),), "float32")
    assert abs(product[0] - around[0]) <= 4 * (product[1] + around[1])
    assert around[1] <= 1e-10 * math.fabs(around[0])


def test_of_two_zeros_the_positive_one_is_the_greater() -> None:
    both = np.array([[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]], np.float32)
    for kind, negative in (("max", [False, False, True]), ("min", [True, True, True])):
        assert np.signbit(Domain().reduce(kind, (both,), 1, "float32")[0]).tolist() == negative
        assert np.signbit(Domain().apply(kind, ((both[:, 0],), (both[:, 1],)), "float32")[0]).tolist() == negative


def test_at_generic_points_numbers_that_differ_by_rounding_are_equal() -> None:
    a, b = np.array([1.0, 1.0, 2.0]), np.array([1.0 + SAME / 2, 1.001, 2.0])
    expected = {"eq": [True, False, True], "lt": [False, True, False], "ge": [True, False, True]}
    for function, holds in expected.items():
        assert Generic().apply(function, ((a,), (b,)), "bool")[0].tolist() == holds
    assert Generic().apply("floor", ((np.array([3.0 - SAME]),),), "float32")[0] == 3.0


def test_a_choice_between_exact_integers_is_as_doubtful_as_its_condition() -> None:
    condition = np.array([True, True]), np.array([0.0, np.inf])
    value, error = Bounded().apply("select", (condition, (np.array([1, 2]),), (np.array([3, 3]),)), "int64")
    assert value.tolist() == [1, 2]
    assert error.tolist() == [0.0, np.inf]


@pytest.mark.parametrize("number", [0.5, -2.0, 0.0, math.inf])
def test_numbers_that_are_meant_in_single_precision_come_with_its_error(number: float) -> None:
    values = np.array([number, number * (1 + PRECISION / 2), number * (1 + 3 * PRECISION), 7.0, math.inf, math.nan])
    close = np.isclose(values, number, rtol=PRECISION, atol=0)
    with np.errstate(invalid="ignore"):
        found = Bounded((number,)).slack(values)
    np.testing.assert_array_equal(found, np.where(close, PRECISION * abs(number), 0.0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_integers_become_exact_numbers(dtype: str) -> None:
    values = np.array([0, 1, np.iinfo(dtype).max if dtype != "bool" else 1], dtype)
    (found,) = Rationals().cast((values,), dtype, "float32")
    assert found.dtype == object
    assert [type(one) for one in found] == [int, int, int]
    assert found.tolist() == [int(one) for one in values]
    assert Rationals().cast((values[1],), dtype, "float32")[0].dtype == object


@given(st.integers(-99, 99), st.integers(-9, 9))
def test_quotients_of_integers_are_exact(a: int, b: int) -> None:
    if b:
        quotient = exact_quotient(a, b)
        assert quotient == Fraction(a, b)
        assert isinstance(quotient, int) == (a % b == 0)
    else:
        with pytest.raises(ZeroDivisionError):
            exact_quotient(a, b)
