"""Sums of many terms are sums of partial sums: what follows a large term is not lost beside it.

Beside 2^24 a float32 that is 1 is lost. Where the first term is 2^24 and all others are 1, one accumulator loses each
of them, partial sums lose those of a block.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from smartmem_rules.emit.c.partial_sums import LONGEST, LONGEST_PRODUCT, LONGEST_TILE, TermLoop, in_partial_sums
from smartmem_rules.tensor.atoms import Var
from tests.plan.models import Array, Node, i64, model
from tests.plan.running import Mode, run

pytestmark = pytest.mark.sampled(6)

LARGE = np.float32(2**24)
MODES = (Mode("none"), Mode("smartmem"), Mode("smartmem", memory="image"), Mode("smartmem", device="gpu"))


def first_is_large(*shape: int) -> Array:
    values = np.ones(shape, np.float32)
    values.reshape(-1)[0] = LARGE
    return values


def added(loops: list[TermLoop], turns: list[int], longest: int, terms: list[int]) -> int:
    """Runs loops; gives what the outermost accumulator takes and counts the terms of all."""
    if not loops:
        terms[0] += 1
        return 1
    first, inner = loops[0], loops[1:]
    if first.sums.blocks:
        size, *smaller = first.sums.blocks
        within = [replace(first, sums=replace(first.sums, blocks=tuple(smaller))), *inner]
        parts = [
            added(within, [min(size, turns[0] - begin), *turns[1:]], longest, terms)
            for begin in range(0, turns[0], size)
        ]
    elif first.sums.inner:
        parts = [added(inner, turns[1:], longest, terms) for _ in range(turns[0])]
    else:
        return sum(added(inner, turns[1:], longest, terms) for _ in range(turns[0]))
    assert max(parts) <= longest
    return len(parts)


@pytest.mark.parametrize("longest", [2, 3, 7])
def test_no_accumulator_takes_more_than_its_share(longest: int) -> None:
    for extents in product([1, 2, 7, 8, 30], [1, 3, 7, 50], [1, 6, 20]):
        loops = in_partial_sums([TermLoop(variable=Var(f"v{i}", e)) for i, e in enumerate(extents)], longest)
        terms = [0]
        assert added(loops, list(extents), longest, terms) <= longest
        assert terms == [math.prod(extents)]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((40_000,), (0,)), ((5000, 3), (0,)), ((3, 90, 1, 70), (1, 3)), ((2, 5003), (1,)), ((1, 20_011, 2), (0, 1))],
    ids=str,
)
def test_reductions(mode: Mode, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    row = first_is_large(*(extent if a in axes else 1 for a, extent in enumerate(shape)))
    feeds = {"x": np.broadcast_to(row, shape).copy()}
    got = run(model([("ReduceSum", "x axes", "y", {"keepdims": 0})], feeds, "y", {"axes": i64(*axes)}), mode, feeds)
    expected = feeds["x"].astype(np.float64).sum(axes)
    assert got["y"].shape == expected.shape
    assert np.abs(got["y"] - expected).max() <= 2 * LONGEST


PRODUCTS: dict[str, tuple[list[Node], tuple[int, ...], tuple[int, ...]]] = {
    "both are inputs": ([("MatMul", "x w", "y")], (4, 12_000), (12_000, 12)),
    "more than a tile takes": ([("MatMul", "x w", "y")], (2, 400_000), (400_000, 8)),
    "one column": ([("MatMul", "x w", "y")], (3, 12_000), (12_000, 1)),
    "one row": ([("MatMul", "x w", "y")], (1, 30_000), (30_000, 16)),
    "columns lie along the reduction": ([("Gemm", "x w", "y", {"transB": 1})], (5, 12_000), (9, 12_000)),
    "windows": ([("Conv", "x w", "y")], (1, 8, 40, 40), (6, 8, 40, 40)),
}


@pytest.mark.parametrize("constant", [False, True], ids=["input", "constant"])
@pytest.mark.parametrize("mode", MODES[1:], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(mode: Mode, name: str, constant: bool) -> None:
    nodes, left, right = PRODUCTS[name]
    feeds, weights = {"x": first_is_large(*left)}, {"w": np.ones(right, np.float32)}
    given = feeds if constant else {**feeds, **weights}
    got = run(model(nodes, given, "y", weights if constant else {}), mode, given)["y"]
    terms = math.prod(left) // left[0]
    expected = np.full(got.shape, terms)
    expected[0] += int(LARGE) - 1
    most = LONGEST_TILE if mode.device == "gpu" else LONGEST_PRODUCT
    assert np.abs(got.astype(np.float64) - expected).max() <= most + 2 * LONGEST
