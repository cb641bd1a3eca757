"""Inputs in memory from which a device copies by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.runtime.contexts.pinned import PinnedArrays
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.feeds import ClosedInputs
from smartmem_rules.tensor.types import TensorType
from tests.runtime.plans import constant_values, make_plan


def feed(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((6, 10)).astype(np.float32)}


def expected(x: np.ndarray) -> np.ndarray:
    return (x + constant_values()) * 2


@pytest.mark.parametrize("host_memory", [False, True])
def test_runs_see_what_was_written_last(host_memory: bool) -> None:
    executor = Executor(make_plan("buffer", "float32"), replace(choose(), host_memory=host_memory))
    given = feed(0)
    pinned = executor.pinned(given)
    assert pinned["x"] is not given["x"]
    assert executor.built.pinned.hold(pinned["x"]) != host_memory
    for seed in range(3):
        pinned["x"][...] = feed(seed)["x"]
        np.testing.assert_array_equal(executor.run(pinned)["y"], expected(feed(seed)["x"]))
    np.testing.assert_array_equal(executor.run(given)["y"], expected(given["x"]))


def test_a_copy_is_saved_only_for_whole_arrays_that_are_still_there() -> None:
    arrays, whole = PinnedArrays(), np.zeros((4, 6), np.float32)
    assert not arrays.hold(whole)
    arrays.add(whole)
    assert arrays.hold(whole)
    assert arrays.hold(whole.reshape(24)[:12])
    assert not arrays.hold(whole[1:])
    larger = np.lib.stride_tricks.as_strided(whole, (8, 6), (24, 4))
    assert not arrays.hold(larger), "it ends behind the array"
    del whole, larger
    assert not arrays.hold(np.zeros((4, 6), np.float32))


def test_pinned_inputs_are_checked_as_those_of_runs() -> None:
    executor = Executor(make_plan("buffer", "float32"), choose())
    with pytest.raises(GraphError, match="missing"):
        executor.pinned({})


def test_feeds_that_are_right_at_once() -> None:
    types = {"x": TensorType("float32", (2, 3)), "i": TensorType("int64", ())}
    closed = ClosedInputs.of(types)
    assert closed is not None
    right = {"x": np.zeros((2, 3), np.float32), "i": np.zeros((), np.int64)}
    assert closed.as_given(right) is not None
    wrong = [
        {"x": right["x"]},
        right | {"y": right["x"]},
        right | {"x": np.zeros((3, 2), np.float32)},
        right | {"x": np.zeros((3, 2), np.float32).T},
        right | {"x": np.zeros((2, 3))},
        right | {"x": np.zeros((2, 3), ">f4")},
        right | {"i": 3},
        right | {"x": np.ma.masked_array(right["x"])},
    ]
    assert [closed.as_given(one) for one in wrong] == [None] * len(wrong)
