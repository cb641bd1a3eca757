"""What planning leaves behind: Python's collector of reference cycles at rest, and free memory for the system."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_resting = 0
_grown = False
_rare = 0
_before = gc.get_threshold()
_RARELY = 50_000, 20, 50
"""New things before a collection of the youngest, and collections before one of older things; Python's: 700, 10, 10."""


@contextmanager
def no_collections() -> Iterator[None]:
    """No automatic collection inside the block, nor in other threads meanwhile.

    A plan's expressions live until it is emitted and have no cycles, so the collector finds nothing in them but looks
    at all of them again and again: a quarter of the processor time of a plan. A collector that the caller switched off
    stays off.
    """
    global _resting
    with _lock:
        if _resting or gc.isenabled():
            _resting += 1
            gc.disable()
            ours = True
        else:
            ours = False
    try:
        yield
    finally:
        if ours:
            with _lock:
                _resting -= 1
                if not _resting:
                    gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Automatic collections inside the block only after many more new things than usual.

    For work of a minute that makes and drops millions of small things, hardly any of them in cycles: looking for
    cycles at Python's pace takes an eighth of its time. That some are found keeps its memory within bounds.
    """
    global _rare, _before
    with _lock:
        if not _rare:
            _before = gc.get_threshold()
            if _before[0]:  # 0 switches the collector off
                gc.set_threshold(*map(max, _before, _RARELY))
        _rare += 1
    try:
        yield
    finally:
        with _lock:
            _rare -= 1
            if not _rare:
                gc.set_threshold(*_before)


def first_grows_old() -> None:
    """At the first call in a process, call all that lives now old: the next collection does not look at it.

    With its first plan a process loads modules and rules and fills caches, which stay.
    """
    global _grown
    if not _grown and gc.get_freeze_count() == 0:  # else somebody keeps things out of the collector's sight
        gc.freeze()
        gc.unfreeze()
    _grown = True


def leave_to_the_system() -> None:
    """At the end of the process, leave what still lives to the system: Python would look for cycles in all of it."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def return_free_memory() -> None:
    """Give the system back what the C library holds free; where the library is another one than glibc, nothing.

    Planning and compilers make and drop many small things, between which half of a process's memory would stay free
    but taken.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if hasattr(os, "fork") else None
    if trim is not None:
        trim(0)
