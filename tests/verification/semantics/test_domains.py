"""The exact arithmetics and the error bounds that verdicts rest on."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import PrimeField, Rationals, Undefined

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
