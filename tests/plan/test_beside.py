"""Weights that a thread packs beside the planner: all are there behind the block, and its errors come out."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from smartmem_rules.plan.schedule.contraction.beside import Beside

LARGE = (1 << 9, 1 << 8)


def values(seed: int, shape: tuple[int, ...] = LARGE) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def test_arrays_are_filled_behind_the_block() -> None:
    gate = threading.Event()

    def later(seed: int) -> Callable[[], np.ndarray]:
        def made() -> np.ndarray:
            gate.wait(10)
            return values(seed).T

        return made

    with Beside() as beside:
        found = [beside.made(values(seed).size, later(seed)) for seed in range(4)]
        small = beside.made(6, lambda: values(9, (2, 3)))
        np.testing.assert_array_equal(small, values(9, (2, 3)).reshape(-1))  # at once: it is not worth a thread
        gate.set()
    for seed, one in enumerate(found):
        np.testing.assert_array_equal(one, values(seed).T.reshape(-1))


def test_little_waits_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what the arrays are made of would be in memory all together."""
    monkeypatch.setattr("smartmem_rules.plan.schedule.contraction.beside._MOST_BYTES", values(0).nbytes)
    filled = list[int]()

    def later(seed: int) -> Callable[[], np.ndarray]:
        def made() -> np.ndarray:
            filled.append(seed)
            return values(seed)

        return made

    with Beside() as beside:
        for seed in range(6):
            beside.made(values(seed).size, later(seed))
            assert len(filled) >= seed - 1
    assert sorted(filled) == list(range(6))


def test_who_leaves_the_block_fills_what_the_thread_has_not_begun_with() -> None:
    begun, gate = threading.Event(), threading.Event()

    def first() -> np.ndarray:
        begun.set()
        assert gate.wait(10)
        return values(0)

    def second() -> np.ndarray:
        gate.set()  # the thread waits for this
        assert threading.current_thread() is threading.main_thread()
        return values(1)

    with Beside() as beside:
        found = [beside.made(values(0).size, first), beside.made(values(1).size, second)]
        assert begun.wait(10)
    for seed, one in enumerate(found):
        np.testing.assert_array_equal(one, values(seed).reshape(-1))


def test_what_an_array_is_made_of_goes_when_it_is_filled() -> None:
    source = values(0)
    alive = weakref.ref(source)
    gone = threading.Event()
    weakref.finalize(source, gone.set)

    def first(source: np.ndarray = source) -> np.ndarray:
        return source

    with Beside() as beside:
        beside.made(source.size, first)
        del source, first
        assert gone.wait(10), alive()


def test_errors_of_the_thread_are_raised() -> None:
    def fails() -> np.ndarray:
        raise ValueError("no such factor")

    def packed() -> None:
        with Beside() as beside:
            beside.made(values(0).size, fails)

    with pytest.raises(ValueError, match="no such factor"):
        packed()


def test_an_error_of_the_planner_stays_what_it_is() -> None:
    def packed() -> None:
        with Beside() as beside:
            beside.made(values(0).size, lambda: values(0))
            raise KeyError("planner")

    with pytest.raises(KeyError, match="planner"):
        packed()
