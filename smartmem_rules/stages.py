"""The stages of an optimization, by name and in their order, and what measures them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from smartmem_rules.limits import DEFAULT_LIMITS, Deadline
from smartmem_rules.logs import logger
from smartmem_rules.records import dataclass

STAGES = (
    "import", "saturate", "extract", "calibrate", "fuse", "layout", "verify", "schedule", "launch", "memory", "emit",
    "build", "probes",
)  # fmt: skip
"""`calibrate` runs a float16 plan's model once in float32; `verify` checks the results of fusion and
layout and, at the end, the emitted plan; `build` compiles the kernels on the device; `probes`, which
stands last because dumped files bear the stages' numbers, finds out before that what kernels must answer."""

_LOG = logger(__name__)

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, the steps done and the steps to do, first with `(stage, 0, 1)`."""
Show = Callable[[str, str], None]
"""Called with a stage's name and the text form of its result."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of time that something took; nanoseconds of `time.perf_counter_ns`."""

    name: str
    start: int
    end: int


class Stages(Protocol):
    """Measures the stages."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Measure a stage while it runs."""

    def show(self, name: str, text: Callable[[], str]) -> None:
        """Offer the text form of a stage's result, which is made only if somebody wants to see it."""


class Unmeasured:
    """Measures nothing."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """No stage is measured."""
        yield

    def show(self, name: str, text: Callable[[], str]) -> None:
        """Nobody looks."""


class Clock:
    """Seconds by stage, the caller's progress display, and who wants to see what stages give.

    Attributes:
        spans: when each stage ran, in the order in which they ended; some stages run several times.
    """

    def __init__(self, progress: Progress | None = None, show: Show | None = None) -> None:
        self._progress = progress
        self._show = show
        self._start = time.perf_counter()
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self.spans: list[Span] = []
        self.deadline = Deadline(DEFAULT_LIMITS)

    def step(self, stage: str, done: int, total: int) -> None:
        """Pass progress on. Raises LimitError when the time is over."""
        self.deadline.check(stage)
        if self._progress is not None:
            self._progress(stage, done, total)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        self.step(name, 0, 1)
        start = time.perf_counter_ns()
        yield
        span = Span(name=name, start=start, end=time.perf_counter_ns())
        self.spans.append(span)
        seconds = (span.end - span.start) * 1e-9
        self._seconds[name] += seconds
        _LOG.debug("%s took %.3f s", name, seconds)
        self.step(name, 1, 1)

    def show(self, name: str, text: Callable[[], str]) -> None:
        """Pass on the text form of a stage's result."""
        if self._show is not None:
            self._show(name, text())

    def table(self) -> dict[str, float]:
        """Seconds by stage, with `total`: everything, what is between the stages included."""
        return {**self._seconds, "total": time.perf_counter() - self._start}
