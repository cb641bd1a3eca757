"""Contents of files as digests, and whether files may have changed since a moment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CHUNK = 1 << 24
_STEP = 1 << 20
_THREADS = 4
_TICK = 20_000_000
"""Nanoseconds by which the time that the system notes for a change may lie behind the clock."""


def file_digest(path: str | Path) -> str:
    """The digest of a file's bytes: that of the digests of its pieces, which several threads make.

    Raises:
        OSError: the file cannot be read.
    """
    places = range(0, max(1, os.stat(path).st_size), _CHUNK)
    if len(places) == 1:
        return _together([_piece(path, 0)])
    with ThreadPoolExecutor(_THREADS) as pool:
        return _together(pool.map(lambda at: _piece(path, at), places))


def bytes_digest(data: bytes) -> str:
    """The digest that a file of these bytes would have."""
    view = memoryview(data)
    pieces = (view[at : at + _CHUNK] for at in range(0, max(1, len(data)), _CHUNK))
    return _together(hashlib.sha256(piece).digest() for piece in pieces)


def folder_files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files below a folder whose names end in certain ways, in a fixed order."""
    inner: list[str] = []
    own: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                inner.append(entry.path)
            elif entry.name.endswith(suffixes):
                own.append(entry.path)
    yield from sorted(own)
    for one in sorted(inner):
        yield from folder_files(Path(one), suffixes)


def unchanged_since(files: Iterable[str | Path], moment: int) -> bool:
    """Whether files are what they were at a moment (nanoseconds of the system's clock).

    The time of the last change of status counts, which the system sets itself where somebody sets the other times.
    """
    try:
        found = [os.stat(file) for file in files]
    except OSError:
        return False
    return all(max(one.st_mtime_ns, one.st_ctime_ns) + _TICK < moment for one in found)


def _piece(path: str | Path, at: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(at)
        digest = hashlib.sha256()
        left = _CHUNK
        while left and (data := file.read(min(left, _STEP))):
            digest.update(data)
            left -= len(data)
        return digest.digest()


def _together(pieces: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()
