"""Requests that wait together run together, in their order, and nobody gets another one's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from examples.serving.batching import Arrays, Batcher, FullError, Limits

LIMITS = Limits(rows=8, seconds=0.05, waiting=4)


def rows(*values: float) -> Arrays:
    return {"x": np.array(values, np.float32).reshape(-1, 1)}


class Runs:
    """Doubles what it gets, as soon as it may, and notes the rows of each run."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.may = asyncio.Event()
        self.may.set()

    async def __call__(self, inputs: Arrays) -> Arrays:
        self.sizes.append(len(inputs["x"]))
        await self.may.wait()
        if np.isnan(inputs["x"]).any():
            raise ValueError("the device refuses")
        return {"y": inputs["x"] * 2}


def played(play: Callable[[Batcher, Runs], Awaitable[None]], limits: Limits = LIMITS) -> None:
    async def whole() -> None:
        runs = Runs()
        batcher = Batcher(runs, limits)
        batcher.start()
        try:
            await asyncio.wait_for(play(batcher, runs), 20)
        finally:
            runs.may.set()
            await batcher.stop()

    asyncio.run(whole())


async def waiting(batcher: Batcher, *requests: Arrays) -> list[asyncio.Task[Arrays]]:
    """Requests that have reached the queue."""
    tasks = [asyncio.create_task(batcher.outputs(one)) for one in requests]
    await asyncio.sleep(0.01)
    return tasks


def test_requests_share_a_run_and_get_their_own_rows() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        found = await asyncio.gather(*await waiting(batcher, rows(1), rows(2, 3), rows(4)))
        assert [one["y"].ravel().tolist() for one in found] == [[2], [4, 6], [8]]
        assert runs.sizes == [4]
        assert (batcher.counts.requests, batcher.counts.runs) == (3, 1)

    played(play)


def test_a_full_batch_does_not_wait() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        await asyncio.gather(*await waiting(batcher, rows(*range(5)), rows(*range(3))))
        assert runs.sizes == [8]

    played(play, Limits(rows=8, seconds=30.0))


def test_what_does_not_fit_runs_next() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        found = await asyncio.gather(*await waiting(batcher, rows(*range(5)), rows(*range(5)), rows(7)))
        assert sorted(runs.sizes) == [5, 6]
        assert found[2]["y"].ravel().tolist() == [14]

    played(play)


def test_requests_of_other_shapes_stay_apart() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        wide: Arrays = {"x": np.ones((1, 3), np.float32)}
        await asyncio.gather(*await waiting(batcher, rows(1), wide, rows(2)))
        assert sorted(runs.sizes) == [1, 2]

    played(play)


def test_one_row_keeps_requests_apart() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        await asyncio.gather(*await waiting(batcher, rows(1), rows(2)))
        assert runs.sizes == [1, 1]

    played(play, Limits(rows=1, seconds=0.0))


def test_whoever_left_before_the_run_is_left_out() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        runs.may.clear()
        (first,) = await waiting(batcher, rows(1))
        await asyncio.sleep(0.1)  # it runs
        left, stays = await waiting(batcher, rows(2), rows(3))
        left.cancel()
        await asyncio.sleep(0)
        runs.may.set()
        assert (await stays)["y"].ravel().tolist() == [6]
        await first
        assert runs.sizes == [1, 1]
        assert batcher.counts.left == 1

    played(play)


def test_whoever_leaves_during_the_run_takes_nothing_from_others() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        runs.may.clear()
        left, stays = await waiting(batcher, rows(2), rows(3))
        await asyncio.sleep(0.1)
        left.cancel()
        runs.may.set()
        assert (await stays)["y"].ravel().tolist() == [6]
        assert runs.sizes == [2]

    played(play)


def test_too_many_are_refused_and_those_who_left_make_room() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        runs.may.clear()
        (running,) = await waiting(batcher, rows(0))
        await asyncio.sleep(0.1)
        tasks = await waiting(batcher, *[rows(n) for n in range(4)])
        with pytest.raises(FullError, match="4 requests wait"):
            await batcher.outputs(rows(9))
        tasks[0].cancel()
        await asyncio.sleep(0)
        (late,) = await waiting(batcher, rows(9))
        runs.may.set()
        assert (await late)["y"].ravel().tolist() == [18]
        await asyncio.gather(running, *tasks[1:])

    played(play)


def test_an_error_reaches_all_of_its_run_and_none_of_the_next() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        tasks = await waiting(batcher, rows(1), rows(float("nan")))
        for task in tasks:
            with pytest.raises(ValueError, match="refuses"):
                await task
        assert (await batcher.outputs(rows(1)))["y"].ravel().tolist() == [2]

    played(play)


def test_the_end_finishes_what_waits_and_refuses_what_comes() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        runs.may.clear()
        tasks = await waiting(batcher, rows(1))
        await asyncio.sleep(0.1)
        tasks += await waiting(batcher, rows(2))
        ending = asyncio.create_task(batcher.stop())
        await asyncio.sleep(0.01)
        with pytest.raises(FullError, match="ends"):
            await batcher.outputs(rows(3))
        runs.may.set()
        assert [(await task)["y"].item() for task in tasks] == [2, 4]
        await ending

    played(play)


def test_answers_hold_no_batch() -> None:
    async def play(batcher: Batcher, runs: Runs) -> None:
        found = await asyncio.gather(*await waiting(batcher, rows(1), rows(2)))
        assert all(one["y"].base is None for one in found)

    played(play)
