"""Integers of every width: sums that wrap, quotients that do not exist, shifts by all bits, powers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.models import Array, Node, model, whole
from tests.plan.running import Mode, agrees

pytestmark = pytest.mark.sampled(40)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_keep_their_width(dtype: str, mode: Mode) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 7, info.max - 2, info.max // 2, 3, 5], dtype)
    feeds = {"x": x, "y": np.roll(x, 2)}
    nodes: list[Node] = [
        ("Add", "x y", "sum"),
        ("Mul", "sum y", "product"),
        ("Sub", "product x", "difference"),
        ("Max", "sum difference", "large"),
        ("Less", "sum x", "less"),
        ("Where", "less product large", "chosen"),
        ("ReduceSum", "product", "total", {"keepdims": 0}),
        ("ReduceMax", "sum", "peak"),
        ("ReduceMin", "product", "low"),
    ]
    outputs = "difference large less chosen total peak low"
    with np.errstate(all="ignore"):
        agrees(model(nodes, feeds, outputs), feeds, mode, expected=_by_numpy(x, np.roll(x, 2)))


def _by_numpy(x: Array, y: Array) -> list[Array]:
    total = x + y
    product = total * y
    difference = product - x
    large = np.maximum(total, difference)
    less = total < x
    summed = np.sum(product, dtype=x.dtype)
    chosen = np.where(less, product, large)
    return [difference, large, less, chosen, np.asarray(summed), total.max(keepdims=True), product.min(keepdims=True)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint32", "uint64", "int8"])
def test_integer_quotients(dtype: str, mode: Mode) -> None:
    low = 0 if dtype.startswith("u") else -100
    x, y = whole(5, 7, dtype=dtype, low=low, high=100), whole(7, dtype=dtype, low=1, high=9)
    if low:
        y = np.where(whole(7, seed=3) > 0, -y, y).astype(dtype)
    feeds = {"x": x, "y": y}
    nodes: list[Node] = [("Div", "x y", "q"), ("Mod", "x y", "m"), ("Mod", "x y", "f", {"fmod": 1})]
    quotient = (
        np.sign(x.astype(np.int64)) * np.sign(y.astype(np.int64)) * (abs(x.astype(np.int64)) // abs(y.astype(np.int64)))
    )
    agrees(model(nodes, feeds, "q m f"), feeds, mode, expected=[quotient.astype(dtype), np.mod(x, y), np.fmod(x, y)])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8"])
def test_a_quotient_that_does_not_exist_harms_nothing(dtype: str, mode: Mode) -> None:
    low = np.iinfo(dtype).min
    x, y = np.array([low, 4, 7, low, 0, 9], dtype), np.array([0, 0, 2, -1 if low else 1, 0, 3], dtype)
    feeds = {"x": x, "y": y, "safe": np.array([False, False, True, False, False, True])}
    nodes: list[Node] = [
        ("Div", "x y", "q"),
        ("Mod", "x y", "m"),
        ("Where", "safe q y", "r"),
        ("Where", "safe m y", "s"),
    ]
    expected = [
        np.where(feeds["safe"], np.array([0, 0, 3, 0, 0, 3], dtype), y),
        np.where(feeds["safe"], x % np.maximum(y, 1), y),
    ]
    agrees(model(nodes, feeds, "r s"), feeds, mode, expected=expected)


def test_shifts_by_all_bits(mode: Mode) -> None:
    x, y = np.array([1, 200, 255, 3, 9], np.uint8), np.array([0, 1, 8, 40, 3], np.uint8)
    feeds = {"x": x, "y": y}
    nodes: list[Node] = [
        ("BitShift", "x y", "l", {"direction": "LEFT"}),
        ("BitShift", "x y", "r", {"direction": "RIGHT"}),
    ]
    wide = x.astype(np.int64)
    expected = [(wide << y.astype(np.int64)).astype(np.uint8), (wide >> y.astype(np.int64)).astype(np.uint8)]
    agrees(model(nodes, feeds, "l r"), feeds, mode, expected=expected)


def test_integers_powers(mode: Mode) -> None:
    x, y = whole(11, low=-3, high=3), whole(11, low=0, high=6, seed=2)
    feeds = {"x": x, "y": y}
    agrees(model([("Pow", "x y", "z")], feeds, "z"), feeds, mode, expected=[np.power(x, y)])
