"""Files that are kept within a bound: the least recently used go first."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_SHARES = 16
"""Looks through a folder while as much is written as it may hold."""
_DRAWN = 4
"""Bytes of a digest that decide whether there is a look."""


def free_bytes(folder: Path) -> int:
    """The bytes that this user may still write to the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def files_under(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """All files under a folder; what vanishes on the way is left out."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_under(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry


def is_looked_through(digest: bytes, written: int, most_bytes: int) -> bool:
    """Whether a folder is to be looked through for its oldest files after one was written.

    A look at thousands of files takes longer than the compiler of a small kernel. So there is one for each sixteenth of
    the bound that is written, on average, whichever processes write. What is written decides, not chance.

    Args:
        digest: of what is written.
        written: its bytes.
        most_bytes: the bound.
    """
    drawn = int.from_bytes(digest[:_DRAWN], "big")
    return drawn * most_bytes < (written * _SHARES) << (8 * _DRAWN)


def forget_oldest(places: Iterable[Path], most_bytes: int, unused: float) -> None:
    """Remove the least recently used files or folders until the rest fit."""
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            found.append((*_use_and_bytes(place), place))
    total = sum(size for _, size, _ in found)
    newest = time.time() - unused
    for used, size, place in sorted(found, key=lambda one: one[0]):
        if total <= most_bytes or used > newest:
            return
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)
        total -= size


def last_used(place: Path) -> float:
    """When a file or a folder was used the last time, by the system's clock."""
    marker = place / "last_accessed"  # PoCL's own
    return (marker if marker.exists() else place).stat().st_mtime


def _use_and_bytes(place: Path) -> tuple[float, int]:
    own = place.stat()
    if stat.S_ISDIR(own.st_mode):
        return last_used(place), sum(file.stat().st_size for file in files_under(place))
    return own.st_mtime, own.st_size
