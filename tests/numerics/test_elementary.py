"""Elementary functions on the device against double precision: a bound in ulps each, and no lane asks its neighbours.

The bounds are those of docs/numerics.md: of CPUs, or of other devices where the device at hand is none.  `--all` draws
64 times as many numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.numerics import special
from tests.numerics.device_functions import WIDTHS, Array, is_cpu, run_primitive, ulps

pytestmark = pytest.mark.sampled(6)

SEED = 20
DRAWN = 1 << 16
INFINITE = math.inf


@dataclass(frozen=True)
class Function:
    """A function of one float.

    Attributes:
        exact: its values in double precision.
        bound: of the error on CPUs, in ulps of float32.
        elsewhere: of the error on all other devices, in both precisions; what OpenCL allows (full profile) but for
            functions of our own.
        double: of the error in float64 on CPUs, in ulps; numpy's own error included.
        low, high: where the bound holds; elsewhere the error is absolute, below `least`.
    """

    exact: Callable[[Array], Array]
    bound: float
    elsewhere: float
    double: float = 2.0
    low: float = -INFINITE
    high: float = INFINITE
    least: float = 0.0


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "exp": Function(np.exp, 1.5, 3.0, low=-86.98, least=1.7e-38),
    "expm1": Function(np.expm1, 1.5, 3.0),
    "log": Function(np.log, 1.0, 3.0),
    "log1p": Function(np.log1p, 1.5, 2.0),
    "sqrt": Function(np.sqrt, 0.5, 3.0, double=0.5),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), 1.5, 2.0),
    "recip": Function(lambda x: 1 / x, 0.5, 2.5, double=0.5),
    "sin": Function(np.sin, 2.5, 4.0),
    "cos": Function(np.cos, 2.5, 4.0),
    "tan": Function(np.tan, 4.0, 5.0, double=4.0),
    "asin": Function(np.arcsin, 1.0, 4.0),
    "acos": Function(np.arccos, 1.0, 4.0),
    "atan": Function(np.arctan, 1.0, 5.0),
    "sinh": Function(np.sinh, 2.5, 4.0, double=3.0),
    "cosh": Function(np.cosh, 2.5, 4.0, double=3.0),
    "tanh": Function(np.tanh, 1.5, 5.0, double=3.0),
    "asinh": Function(np.arcsinh, 2.0, 4.0, double=3.0),
    "acosh": Function(np.arccosh, 2.0, 4.0, double=3.0),
    "atanh": Function(np.arctanh, 1.5, 5.0, double=3.0),
    "erf": Function(_erf, 64.0, 64.0),
    "sigmoid": Function(_sigmoid, 3.0, 6.0, low=-86.0, least=5e-38),
    "floor": Function(np.floor, 0.0, 0.0, double=0.0),
    "ceil": Function(np.ceil, 0.0, 0.0, double=0.0),
    "round": Function(np.rint, 0.0, 0.0, double=0.0),
    "abs": Function(np.abs, 0.0, 0.0, double=0.0),
    "sign": Function(np.sign, 0.0, 0.0, double=0.0),
}


def drawn(dtype: str = "float32", count: int = DRAWN) -> Array:
    """Special values, random bits, and numbers of everyday sizes; every float16 among them."""
    rng = np.random.default_rng(SEED)
    bits = np.dtype(dtype).itemsize * 8
    wild = rng.integers(0, 2**bits, count, f"uint{bits}").view(dtype)
    plain = (rng.standard_normal(count) * np.exp2(rng.integers(-20, 8, count))).astype(dtype)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(dtype)
    (values,) = special.whole_vectors(np.concatenate([special.floats(dtype), wild, plain, halves]))
    return np.asarray(values)


def unit(dtype: Any, function: Function, x: Array, y: Array) -> tuple[float, str]:
    """The largest error in ulps, and where it is; what the bound leaves out is compared absolutely."""
    with np.errstate(all="ignore"):
        exact = function.exact(x.astype(np.float64))
        distance = ulps(y, exact, dtype)
        outside = (x < function.low) | (x > function.high)
        small = np.abs(y.astype(np.float64) - exact) <= function.least
    distance = np.where(outside & small, 0.0, distance)
    worst = int(np.argmax(distance))
    return float(distance[worst]), f"f({x[worst]!r}) = {y[worst]!r}, exactly {exact[worst]!r}"


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("width", WIDTHS)
def test_single_precision(name: str, width: int, all_cases: bool) -> None:
    x = drawn(count=64 * DRAWN if all_cases else DRAWN)
    y = run_primitive(name, [x], ["float32"], "float32", width, is_cpu())
    worst, where = unit("float32", FUNCTIONS[name], x, y)
    assert worst <= (FUNCTIONS[name].bound if is_cpu() else FUNCTIONS[name].elsewhere), (
        f"{worst:.3g} ulps: {where}; default_rng({SEED})"
    )


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("expm1", "log1p")])
def test_double_precision(name: str) -> None:
    function = FUNCTIONS[name]
    if name == "erf":
        pytest.skip("numpy has no erf in more than double precision; see test_half_precision")
    x = drawn("float64", 1 << 14)
    plain = Function(function.exact, 0.0, 0.0)
    worst, where = unit("float64", plain, x, run_primitive(name, [x], ["float64"], "float64", cpu=is_cpu()))
    assert worst <= (function.double if is_cpu() else function.elsewhere), (
        f"{worst:.3g} ulps: {where}; default_rng({SEED})"
    )


@pytest.mark.parametrize("cpu", [True, False], ids=["cpu", "others"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("name", "far"), [("erf", 4.0), ("tanh", 9.1)])
def test_what_tends_to_one_is_one_far_from_zero(name: str, far: float, width: int, cpu: bool) -> None:
    """Exactly: 1 + erf(-inf) and 1 + tanh(-inf) are 0, and 0 times infinity is NaN."""
    x = np.array([far, 20.0, 100.0, np.inf, -far, -20.0, -1e30, -np.inf], np.float32)
    y = run_primitive(name, [x], ["float32"], "float32", width, cpu)
    np.testing.assert_array_equal(y, np.sign(x))


@pytest.mark.parametrize("cpu", [True, False], ids=["cpu", "others"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_does_not_depend_on_its_neighbours(name: str, cpu: bool) -> None:
    """Each number alone in all lanes, and among others: the same bits."""
    if not cpu and name not in ("sin", "cos", "tan"):
        pytest.skip("these are the device's own functions: the device decides")
    rng = np.random.default_rng(SEED)
    (x,) = special.whole_vectors(rng.permutation(drawn()[: 1 << 13]))
    for width in WIDTHS[1:]:
        mixed = run_primitive(name, [x], ["float32"], "float32", width, cpu)
        alone = run_primitive(name, [np.repeat(x, width)], ["float32"], "float32", width, cpu)[::width]
        differs = (mixed != alone) & ~(np.isnan(mixed) & np.isnan(alone))
        place = int(np.argmax(differs))
        assert not differs.any(), f"f({x[place]!r}) is {mixed[place]!r} among others, {alone[place]!r} alone"


def test_powers() -> None:
    base, exponent = special.pairs(special.floats(), special.floats())
    rng = np.random.default_rng(SEED)
    more = np.abs(drawn()[-(1 << 14) :])
    base, exponent = np.concatenate([base, more]), np.concatenate([exponent, rng.normal(0, 9, 1 << 14)])
    base, exponent = special.whole_vectors(base.astype(np.float32), exponent.astype(np.float32))
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.float64), exponent.astype(np.float64))
    for width in WIDTHS:
        y = run_primitive("pow", [base, exponent], ["float32"] * 2, "float32", width, is_cpu())
        distance = ulps(y, exact)
        worst = int(np.argmax(distance))
        assert distance[worst] <= (1.0 if is_cpu() else 16.0), (
            f"{base[worst]!r} ** {exponent[worst]!r} = {y[worst]!r}, not {exact[worst]!r}"
        )
