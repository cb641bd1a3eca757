"""Measures several systems beside each other: their runs take turns, so that all meet the same state of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from smartmem_rules.records import dataclass
from smartmem_rules.runtime.executor import Latency, summary

REST = 0.1
"""Seconds between the turns of different processes: the threads of some systems spin for tens of milliseconds after a
run, on the cores of whoever comes next."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Something to measure.

    Attributes:
        name: how results call it.
        run: one inference, from inputs on the host to outputs on the host.
        kernels: how many kernels it enqueues, None where that is not known.
        timed: whether `run` gives the milliseconds itself, because it works in another process.
    """

    name: str
    run: Callable[[], object]
    kernels: int | None
    device: str
    timed: bool = False


def interleaved(contenders: Sequence[Contender], runs: int, warmup: int = 2) -> list[Latency]:
    """The times of every contender, as `executor.summary` gives them."""
    for contender in contenders:
        for _ in range(warmup):
            contender.run()
    times: list[list[float]] = [[] for _ in contenders]
    rest = REST if any(contender.timed for contender in contenders) else 0.0
    for _ in range(runs):
        for contender, own in zip(contenders, times, strict=True):
            if rest:
                time.sleep(rest)
                # caches and threads are warm again, as in a service that answers one request after another
                contender.run()
            start = time.perf_counter()
            result = contender.run()
            own.append(float(result) if contender.timed else (time.perf_counter() - start) * 1e3)  # type: ignore[arg-type]
    return [summary(own, c.kernels, c.device) for c, own in zip(contenders, times, strict=True)]
