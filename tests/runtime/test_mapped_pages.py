"""Pages of a mapped file that are let go of and read again."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.runtime.mapped_pages import forget_pages

SIZE = 64 * mmap.PAGESIZE


def resident(path: Path) -> int:
    """The bytes of a mapped file that this process holds."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line.endswith(str(path)))
    return next(1024 * int(line.split()[1]) for line in lines[start:] if line.startswith("Rss:"))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what a process holds")
def test_what_was_read_is_let_go_of_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(SIZE, dtype=np.uint8).tofile(path)
    with open(path, "rb") as stream:
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    array = np.frombuffer(mapped, np.uint8, SIZE - 100, 100).view(np.int8)
    total = int(array.sum())
    assert resident(path) == SIZE
    forget_pages(array)
    assert resident(path) <= 2 * mmap.PAGESIZE
    assert int(array.sum()) == total


def test_other_arrays_stay_as_they_are() -> None:
    array = np.arange(10000)
    forget_pages(array[5:])
    assert array.sum() == 49995000
