"""Files that are written whole or not at all, whatever ends the process in between."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_NO_UNNAMED_FILES = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})
"""What filesystems and kernels that have no unnamed files answer."""


@contextmanager
def whole_file(target: str | Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file `target` when the block ends well; else `target` stays what it was.

    Where the system has files without a name (O_TMPFILE of Linux) a process that is killed leaves nothing behind;
    elsewhere it leaves a hidden file beside the target.

    Raises:
        OSError: the file cannot be written.
    """
    place = Path(target)
    if not place.name:  # "", ".", "/": folders
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    unnamed = _unnamed(place.parent)
    if unnamed is None:
        with _named(place) as stream:
            yield stream
        return
    with os.fdopen(unnamed, "w+b") as stream:
        yield stream
        stream.flush()
        _give_name(stream.fileno(), place)


def write_whole(target: str | Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    with whole_file(target) as stream:
        stream.write(content)


def _unnamed(folder: Path) -> int | None:
    """A new file without a name in a folder; None where the system has none."""
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES and folder.is_dir():
            return None
        raise


def _give_name(number: int, target: Path) -> None:
    try:
        _link(number, target)
        return
    except FileExistsError:
        pass
    hidden = target.with_name(f".{target.name[:64]}.{os.getpid()}-{number}.part")
    hidden.unlink(missing_ok=True)
    _link(number, hidden)
    try:
        hidden.replace(target)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def _link(number: int, target: Path) -> None:
    # Python follows the link to the open file only where a folder's number is given, which an absolute path ignores
    os.link(f"/proc/self/fd/{number}", target, src_dir_fd=number, follow_symlinks=True)


@contextmanager
def _named(target: Path) -> Iterator[IO[bytes]]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.", suffix=".part")
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
