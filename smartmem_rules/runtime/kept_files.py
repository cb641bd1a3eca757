"""Files that are kept within a bound: the least recently used go first."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path


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


def forget_oldest(places: Iterable[Path], most_bytes: int, unused: float) -> None:
    """Remove the least recently used files or folders until the rest fit."""
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            found.append((last_used(place), _bytes(place), place))
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


def _bytes(place: Path) -> int:
    if place.is_dir():
        return sum(file.stat().st_size for file in files_under(place))
    return place.stat().st_size
