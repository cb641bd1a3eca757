"""Weights packed by a thread beside the one that plans: copying holds no lock of Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np

from smartmem_rules.plan.kernel.packing import room

_FROM = 1 << 16
"""Elements from which on a thread is told: telling it takes time, too."""
_MOST_BYTES = 1 << 28
"""Of arrays that wait: what they are made of stays in memory until then."""


class Beside:
    """Fills arrays in the background; behind the block that it opens all of them are filled.

    Who leaves the block fills some of those that are left. An error of the thread is raised there.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._filling: deque[tuple[Future[None], _Fill, int]] = deque()
        self._bytes = 0

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._help()
        finally:
            self._pool.shutdown(cancel_futures=True)
        if error is None:
            self._wait(0)

    def made(self, elements: int, values: Callable[[], np.ndarray]) -> np.ndarray:
        """An array of `room` that will hold these values one after the other, of which there are so many."""
        made = room(elements, np.dtype(np.float32))
        fill = _Fill(made, values)
        if elements < _FROM:
            fill()
            return made
        self._wait(_MOST_BYTES)
        self._filling.append((self._pool.submit(fill), fill, made.nbytes))
        self._bytes += made.nbytes
        return made

    def _help(self) -> None:
        """Fill what the thread has not begun with, from the end."""
        while self._filling and self._filling[-1][0].cancel():
            _, fill, size = self._filling.pop()
            fill()
            self._bytes -= size

    def _wait(self, most: int) -> None:
        while self._bytes > most:
            future, _, size = self._filling.popleft()
            future.result()
            self._bytes -= size


class _Fill:
    """Fills an array, once; what it is made of is let go then, though who waits still knows of it."""

    def __init__(self, made: np.ndarray, values: Callable[[], np.ndarray]) -> None:
        self._made = made
        self._values: Callable[[], np.ndarray] | None = values

    def __call__(self) -> None:
        values, self._values = self._values, None
        assert values is not None
        found = values()
        self._made.reshape(found.shape)[...] = found
