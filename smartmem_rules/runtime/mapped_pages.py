"""Pages of mapped files that a process has read and need not hold: the system reads them again where they are used."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def forget_pages(array: np.ndarray) -> None:
    """Let go of the whole pages in which an array of a mapped file lies; nothing happens to other arrays."""
    root: Any = array
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    if isinstance(root, memoryview):
        root = root.obj
    if not isinstance(root, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(root, np.uint8).ctypes.data
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        root.madvise(mmap.MADV_DONTNEED, first, length)
