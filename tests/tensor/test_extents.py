"""Extents compute as integers do, and never become a number by themselves."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smartmem_rules.exchange.extents import extent_data, extent_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.division import floor_divide, gcd, split_multiple
from smartmem_rules.tensor.extents import (
    Dimension,
    SymbolicExtentError,
    at,
    dimensions,
    is_symbolic,
    symbol,
)
from smartmem_rules.tensor.index import Index, div, mod, variable
from smartmem_rules.tensor.ranges import (
    answering,
    bounds,
    largest,
    maximum,
    minimum,
    same,
    several,
    smallest,
    surely_at_most,
    surely_below,
)
from smartmem_rules.tensor.substitution import ravel, unravel

N = Dimension("n", 1, 40)
M = Dimension("batch size", 2, 5)
n, m = symbol(N), symbol(M)
POINTS = [{"n": a, "batch size": b} for a in (1, 2, 3, 7, 8, 16, 39, 40) for b in (2, 3, 5)]


def drawn(random_: random.Random, depth: int = 3) -> tuple[Any, Callable[[dict[str, int]], int]]:
    """An expression over extents, and the same over numbers."""
    kind = random_.choice(["n", "m", "number", "+", "-", "*", "//", "%"] if depth else ["n", "m", "number"])
    if kind == "n":
        return n, lambda p: p["n"]
    if kind == "m":
        return m, lambda p: p["batch size"]
    if kind == "number":
        number = random_.choice([-7, -2, -1, 0, 1, 2, 3, 4, 8, 12, 64])
        return number, lambda p: number
    a, fa = drawn(random_, depth - 1)
    if kind in ("//", "%"):
        factor = random_.choice([1, 2, 3, 4, 8, 64])
        kinds: list[tuple[Any, Callable[[dict[str, int]], int]]] = [
            (factor, lambda p: factor),
            (n * factor, lambda p: p["n"] * factor),
            (m + factor, lambda p: p["batch size"] + factor),
        ]
        b, fb = random_.choice(kinds)
        return (a // b, lambda p: fa(p) // fb(p)) if kind == "//" else (a % b, lambda p: fa(p) % fb(p))
    b, fb = drawn(random_, depth - 1)
    if kind == "+":
        return a + b, lambda p: fa(p) + fb(p)
    if kind == "-":
        return a - b, lambda p: fa(p) - fb(p)
    return a * b, lambda p: fa(p) * fb(p)


@pytest.mark.parametrize("seed", range(400))
def test_arithmetic(seed: int) -> None:
    expression, numbers = drawn(random.Random(seed))
    low, high = bounds(expression)
    for point in POINTS:
        value = at(expression, point)
        assert value == numbers(point), (repr(expression), point)
        assert low <= value <= high


@pytest.mark.parametrize("seed", range(200))
def test_decisions_hold_for_the_whole_range(seed: int) -> None:
    random_ = random.Random(seed)
    (a, fa), (b, fb) = drawn(random_), drawn(random_)
    values = [(fa(p), fb(p)) for p in POINTS]
    for decide, holds in (
        (lambda: a < b, [x < y for x, y in values]),
        (lambda: a <= b, [x <= y for x, y in values]),
        (lambda: a > b, [x > y for x, y in values]),
        (lambda: a >= b, [x >= y for x, y in values]),
        (lambda: same(a, b), [x == y for x, y in values]),
    ):
        try:
            decided = decide()
        except SymbolicExtentError:
            continue
        assert set(holds) == {decided}, (repr(a), repr(b))
    if surely_below(a, b):
        assert all(x < y for x, y in values)
    if surely_at_most(a, b):
        assert all(x <= y for x, y in values)
    if a == b:
        assert all(x == y for x, y in values)


USES: dict[str, Callable[[], object]] = {
    "range": lambda: range(n),
    "int": lambda: int(n),
    "float": lambda: float(n),
    "an array's shape": lambda: np.zeros((n, 2)),
    "an array's element": lambda: np.asarray([n, 2], np.int64),
    "a list's place": lambda: [1, 2, 3][n],
    "copies of a list": lambda: [0] * n,
    "bytes": lambda: bytes(n),
    "a quotient": lambda: 1 / n,
    "an inexact quotient": lambda: n / 2,
    "a root": lambda: math.sqrt(n),
    "a sum with a fraction": lambda: n + 0.5,
    "an open comparison": lambda: n < 5,
    "an open equality": lambda: same(n, 5),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_no_number_slips_out(use: Callable[[], object]) -> None:
    with pytest.raises((SymbolicExtentError, TypeError)):
        use()


def test_it_is_an_integer_to_those_who_ask() -> None:
    assert isinstance(n, int)
    assert is_symbolic(n)
    assert not is_symbolic(3)
    match n:
        case int():
            pass
        case _:
            pytest.fail("no integer")


def test_equality_is_that_of_expressions() -> None:
    assert n == symbol(N)
    assert n != 1
    assert n + m - m == n
    assert hash(n * m) == hash(m * n)
    assert len({n, n + 0, m}) == 2
    assert n - n == 0
    assert type(n - n) is int


def test_exact_quotients_are_polynomials() -> None:
    assert repr(n * 64 * m // (n * 8)) == "(batch size * 8)"
    assert (n * 64 - 1) // (n * 64) == 0
    assert (n * 6) / 3 == n * 2
    assert split_multiple(n * 12 + 5, 4) == (n * 3 + 1, 1)
    assert gcd(n * 64, n * 48) == n * 16
    assert floor_divide(n, 64) == 0  # at most 40


def test_a_multiple_of_a_divisor_whose_range_says_nothing_divides() -> None:
    block, channels = symbol(Dimension("block", -100, 100)), symbol(Dimension("channels", 1, 100))
    divisor = block * block
    with answering(lambda left, operator, right: True):
        assert floor_divide(channels * divisor, divisor) == channels


def test_c_text_counts_as_the_extent_does() -> None:
    """Evaluated as Python: quotients written with / are of numbers that are not negative, where both divide alike."""
    for expression in (-(-n // 4), n % 8, (n * 6 + 3) // 4, n // 3 * m, (n + m) // (m + 2), n * -2 + 100):
        text = str(expression).replace("/", "//").replace("dim_batch_20_size", "b").replace("dim_n", "n")
        for point in POINTS:
            names = {"n": point["n"], "b": point["batch size"], "smr_floordiv_i": floor_divide}
            assert eval(text, names) == at(expression, point)
    assert "smr_floordiv_i(" in str((n - m) // 7)


def test_extreme_values() -> None:
    assert (smallest(n), largest(n), smallest(-n), largest(n * m)) == (1, 40, -40, 200)
    assert maximum(1, n) == minimum(40, n) == n
    assert (several(n), several(2), several(1), several(0)) == (True, True, False, False)
    wide = symbol(Dimension("wide", 1, 1 << 40))
    assert bounds(wide * 3 - 1) == (2, 3 * (1 << 40) - 1)
    assert surely_below(wide, wide + 1)
    assert surely_at_most(wide // 4, 1 << 38)


def test_a_range_of_one_value_is_a_number() -> None:
    assert symbol(Dimension("one", 3, 3)) == 3


def test_copies_and_files() -> None:
    extent = -(-n // 4) * m + 3
    assert pickle.loads(pickle.dumps(extent)) == copy.deepcopy(extent) == extent
    data = json.loads(json.dumps(extent_data(extent)))
    assert extent_of(data, {"n": N, "batch size": M}) == extent
    assert dimensions(extent) == {N, M}


def test_indices_over_open_extents() -> None:
    """Heads split and merge: the round trip of a row-major position is the place itself."""
    shape = (m, n, 4, 16)
    places = tuple(variable(Var(f"i{axis}", extent)) for axis, extent in enumerate(shape))
    assert unravel(ravel(places, shape), shape) == places
    row = ravel(places[:2], shape[:2])
    assert unravel(row, shape[:2]) == places[:2]
    assert div(ravel(places, shape), n * 64) == places[0]
    assert mod(ravel(places, shape), 16) == places[3]
    assert ravel(places, shape).is_open
    assert not Index(3).is_open


def test_bounds_are_exact_beside_the_ends_of_integers() -> None:
    """The end of a slice is often the greatest integer, and a product with it leaves 64 bits."""
    n, far = symbol(Dimension("n", 1, 9)), 2**63 - 1
    assert bounds(n * far + far) == (2 * far, 10 * far)
    assert bounds((n * far + 1) // 2 - n) == ((far + 1) // 2 - 1, (9 * far + 1) // 2 - 9)
    assert maximum(n * -far, n) == n
