"""Systems timed in turns in one process, each turn behind a pause in which threads of others end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

PAUSE = 0.05
"""Seconds: ONNX Runtime's threads spin for a while after a run."""


def in_turns(
    systems: Mapping[str, Callable[[], object]],
    turns: int,
    runs: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each run of each system.

    Args:
        runs: of a system in each turn, behind one that does not count.
    """
    found: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(turns):
        for name, run in systems.items():
            time.sleep(PAUSE)
            run()
            for _ in range(runs):
                begin = clock()
                run()
                found[name].append(clock() - begin)
    return found
