"""OpenCL and fork: a driver's threads and its connection to the device stay with the process that opened them.

A child of `os.fork` has a copy of the driver's memory, whose queues no thread works off: it would wait for ever. The
driver cannot be opened anew in that process either. So whatever needs a device is refused there.
"""

from __future__ import annotations

import os

_opened_in: int | None = None


def note_opened() -> None:
    """Remember that this process has made its first OpenCL call."""
    global _opened_in
    if _opened_in is None:
        _opened_in = os.getpid()


def refuse_in_child(error: type[Exception]) -> None:
    """Raise `error` where this process is a fork of one that had opened OpenCL devices."""
    if _opened_in is not None and _opened_in != os.getpid():
        raise error(
            f"process {os.getpid()} is a fork of process {_opened_in}, which had opened OpenCL devices, and "
            "they do not work in a fork; start processes with multiprocessing.get_context('spawn'), or fork before the "
            "first call of optimize, load or devices"
        )
