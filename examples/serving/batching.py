"""Requests that wait together run together: a queue whose first requests become one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
Run = Callable[[Arrays], Awaitable[Arrays]]


class FullError(Exception):
    """The queue takes no more requests: too many wait, or the server ends."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When requests run.

    Attributes:
        rows: the most that one run takes; 1 keeps requests apart.
        seconds: for which a request waits for others at most, while there is room beside it.
        waiting: requests that may wait; one more is refused.
    """

    rows: int
    seconds: float = 0.002
    waiting: int = 256


@dataclass(kw_only=True)
class Counts:
    """What became of requests: those that ran, in how many runs, and those whose client left before."""

    requests: int = 0
    runs: int = 0
    left: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Request:
    inputs: Arrays
    rows: int
    answer: asyncio.Future[Arrays] = field(repr=False)

    @property
    def kind(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Requests of one kind can be joined along their first axis."""
        return tuple((name, array.shape[1:]) for name, array in sorted(self.inputs.items()))


class Batcher:
    """Joins requests along the first axis of their arrays, runs one batch at a time and parts the outputs again.

    Args:
        run: computes the outputs of a batch, which have its rows.
    """

    def __init__(self, run: Run, limits: Limits) -> None:
        self._run = run
        self._limits = limits
        self._waiting: deque[_Request] = deque()
        self._news = asyncio.Event()
        self._ends = False
        self._task: asyncio.Task[None] | None = None
        self.counts = Counts()

    def start(self) -> None:
        """Begin to run requests, in the running event loop."""
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Refuse new requests, finish those that wait, and return."""
        self._ends = True
        self._news.set()
        if self._task is not None:
            await self._task

    async def outputs(self, inputs: Arrays) -> Arrays:
        """The outputs of one request; cancelled before its run has begun, it never runs.

        Args:
            inputs: which the model takes, with the same first extent.

        Raises:
            FullError: the request is refused.
        """
        if self._ends:
            raise FullError("the server ends; ask another one")
        self._waiting = deque(one for one in self._waiting if not self._gone(one))
        if len(self._waiting) >= self._limits.waiting:
            raise FullError(f"{len(self._waiting)} requests wait already; ask again later")
        rows = next(iter(inputs.values())).shape[0] if self._limits.rows > 1 else 1
        request = _Request(inputs=inputs, rows=rows, answer=asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._news.set()
        return await request.answer

    def _gone(self, request: _Request) -> bool:
        gone = request.answer.cancelled()
        self.counts.left += gone
        return gone

    async def _work(self) -> None:
        while True:
            self._news.clear()
            if self._waiting:
                await self._gather()
                batch = self._taken()
                if batch:
                    await self._answer(batch)
            elif self._ends:
                return
            else:
                await self._news.wait()

    async def _gather(self) -> None:
        """Wait until a batch is full, or its first request has waited long enough."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.seconds
        while not self._ends and sum(one.rows for one in self._waiting) < self._limits.rows:
            left = until - loop.time()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self._news.wait(), left)
            except TimeoutError:
                return
            self._news.clear()

    def _taken(self) -> list[_Request]:
        """The first requests that fit into one run; those of another kind, or that do not fit, wait for the next."""
        taken: list[_Request] = []
        others: deque[_Request] = deque()
        room = self._limits.rows
        for one in self._waiting:
            if self._gone(one):
                continue
            if one.rows <= room and (not taken or one.kind == taken[0].kind):
                taken.append(one)
                room -= one.rows
            elif not taken:  # larger than any run: the run itself says so
                taken.append(one)
                room = 0
            else:
                others.append(one)
        self._waiting = others
        return taken

    async def _answer(self, batch: Sequence[_Request]) -> None:
        self.counts.runs += 1
        self.counts.requests += len(batch)
        try:
            outputs = await self._run(_joined(batch))
        except Exception as error:
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(error)
            return
        start = 0
        for one in batch:
            if not one.answer.done():
                one.answer.set_result(outputs if len(batch) == 1 else _rows(outputs, start, one.rows))
            start += one.rows


def _joined(batch: Sequence[_Request]) -> Arrays:
    if len(batch) == 1:
        return batch[0].inputs
    return {name: np.concatenate([one.inputs[name] for one in batch]) for name in batch[0].inputs}


def _rows(outputs: Arrays, start: int, count: int) -> Arrays:
    """A request's own rows, copied: a view would keep the whole batch."""
    return {name: array[start : start + count].copy() for name, array in outputs.items()}
