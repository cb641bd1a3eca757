"""Waits for what a process answers, as long as it computes no longer than it may: other work takes none of its time."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

_STEP = 0.25
"""Seconds of the clock between two looks at a process."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int) -> float:
    """What all threads of a process have used since it began, and its children that have ended.

    Raises:
        FileNotFoundError: there is no such process.
    """
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * _TICK


def too_long(receiver: Connection, process: int, seconds: float) -> str:
    """Wait until something can be received: an answer, or that the process has ended.

    Args:
        receiver: what the process answers with.
        process: its number.
        seconds: of the processor, that the answer may take. A process that uses nothing of the processor in so many
            seconds of the clock waits for what never comes.

    Returns:
        Why the process is not waited for any longer; empty where something can be received.
    """
    before = latest = _used(process)
    moved = time.monotonic()
    while not receiver.poll(_STEP):
        used = _used(process)
        if used - before > seconds:
            return f"no answer in {seconds:g} s of the processor"
        if used > latest:
            latest, moved = used, time.monotonic()
        elif time.monotonic() - moved > seconds:
            return f"no answer, and nothing computed in {seconds:g} s"
    return ""


def _used(process: int) -> float:
    """The seconds of a process; one that has ended uses none, and its end is what can be received next."""
    try:
        return processor_seconds(process)
    except FileNotFoundError:
        return 0.0
