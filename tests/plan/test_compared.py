"""Tensors that are compared with what is selected from them: both sides see each element after the same roundings."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.plan.models import Array, Node, i64, model, normal
from tests.plan.programs import program_of
from tests.plan.running import Mode, run

PRODUCT: Node = ("Mul", "a b", "x")
MODES = [
    Mode(level, "buffer", storage) for level in ("none", "eliminate", "smartmem") for storage in ("float32", "float16")
]


def _feeds(dtype: str) -> dict[str, Array]:
    return {"a": normal(6, 1, 1, dtype=dtype), "b": normal(6, 1, 40, dtype=dtype, seed=1)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_place_of_a_largest_element_is_found(dtype: str, mode: Mode) -> None:
    """The maximum is an output in the model's own type; what it is compared with may not be computed again."""
    feeds = _feeds(dtype)
    proto = model([PRODUCT, ("MaxPool", "x", "y i", {"kernel_shape": [2]})], feeds, "y i")
    got = run(proto, mode, feeds)
    places = got["i"].ravel()
    assert np.all(places < 240), onnx.printer.to_text(proto)
    products = (feeds["a"].astype(np.float64) * feeds["b"]).ravel()
    np.testing.assert_allclose(got["y"].ravel(), products[places], rtol=2e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_largest_of_a_row_is_as_large_as_one_of_the_row(dtype: str, mode: Mode) -> None:
    feeds = _feeds(dtype)
    nodes: list[Node] = [PRODUCT, ("ReduceMax", "x axes", "m"), ("GreaterOrEqual", "x m", "y")]
    got = run(model(nodes, feeds, "m y", {"axes": i64(2)}), mode, feeds)
    assert np.all(got["y"].any(axis=2))


def test_what_is_compared_is_known_through_moves_and_selections() -> None:
    """A comparison of unrelated tensors, or behind a rounding, keeps nothing in memory."""
    feeds = {"a": normal(6, 40), "b": normal(6, 40)}
    nodes: list[Node] = [
        ("Add", "a b", "x"),
        ("Transpose", "x", "t", {"perm": [1, 0]}),
        ("ReduceMax", "t axes", "m"),
        ("Equal", "t m", "y"),
    ]
    assert {"x", "m"} <= program_of(nodes, feeds, "y", {"axes": i64(0)}).compared
    other: list[Node] = [("Add", "a b", "x"), ("Mul", "a b", "z"), ("Less", "x z", "y")]
    assert not program_of(other, feeds, "y").compared
