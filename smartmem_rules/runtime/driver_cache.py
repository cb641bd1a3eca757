"""The folder in which PoCL keeps what it compiles: put beside our own files, looked after, and kept within a bound.

PoCL keeps compiled kernels itself, by source, device and version, and would compile everything once more to give
binaries away. Its folder is `pocl` of the cache folder (`$SMARTMEM_CACHE`); `$POCL_CACHE_DIR` puts it elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path

from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.kept_files import files_under, forget_oldest, free_bytes, last_used

_DRIVER_BYTES = 1 << 30
DRIVER_ROOM = 32 << 20
"""Free bytes on the disk to which a driver compiles, below which nothing is compiled: PoCL ends the process when a
write of its fails."""
_DAY = 86400.0


def keep_driver_cache() -> None:
    """Give PoCL a folder for its files and look after it; to be called before the first OpenCL call of the process.

    It is ours, unless `$POCL_CACHE_DIR` names another one; a folder for this process alone where that one is read-only
    or its disk is full, with which PoCL would refuse every kernel or end the process.
    """
    if "POCL_CACHE_DIR" in os.environ:
        return
    base = cache_folder()
    folder = _drivers_own_folder() if base is None else base / "pocl"
    if folder is not None and takesfiles_under(folder):
        if base is not None:
            os.environ["POCL_CACHE_DIR"] = str(folder)
            with contextlib.suppress(OSError):
                _look_after(folder)
        return
    for parent in (tempfile.gettempdir(), "/dev/shm"):
        if takesfiles_under(Path(parent), make=False):
            own = tempfile.mkdtemp(prefix="smartmem-pocl-", dir=parent)
            atexit.register(shutil.rmtree, own, ignore_errors=True)
            os.environ["POCL_CACHE_DIR"] = own
            return


def takesfiles_under(folder: Path, make: bool = True) -> bool:
    """Whether files can be written into a folder, and there is room for those of a compiler."""
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError:
        return False
    return free_bytes(folder) >= DRIVER_ROOM


def driver_folder() -> Path | None:
    """Where PoCL writes what it compiles; None where that cannot be told."""
    given = os.environ.get("POCL_CACHE_DIR")
    return Path(given) if given else _drivers_own_folder()


def _drivers_own_folder() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if not base:
        return None
    return Path(base) / ("pocl/kcache" if os.environ.get("XDG_CACHE_HOME") else ".cache/pocl/kcache")


def _look_after(folder: Path) -> None:
    """Clean the folder once a day, and look for halves of programs when a process that used it was killed."""
    stamp = folder / "smartmem-checked"
    killed = _forget_killed(folder)
    if not stamp.exists() or time.time() - stamp.stat().st_mtime > _DAY:
        stamp.touch()
        clean_driver_cache(folder)
    elif killed is not None:
        drop_damaged(folder, killed)


def _forget_killed(folder: Path) -> float | None:
    """Note that this process uses the folder, and say since when one has used it that was killed; None: none was.

    Each process holds a lock on a file of its own, which the system takes back when the process ends.
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        return None
    since: list[float] = []
    users = folder / "smartmem-users"
    users.mkdir(exist_ok=True)
    for path in users.iterdir():
        with contextlib.suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            since.append(path.stat().st_mtime)
            path.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=users)
    fcntl.flock(handle, fcntl.LOCK_SH)
    atexit.register(_stop_using, os.getpid(), name)
    return min(since, default=None)


def _stop_using(process: int, name: str) -> None:
    if process == os.getpid():  # not in a fork
        Path(name).unlink(missing_ok=True)


def clean_driver_cache(folder: Path, most_bytes: int = _DRIVER_BYTES, unused: float = _DAY) -> None:
    """Drop damaged programs of PoCL's cache (they would end the process), and old ones beyond the bound.

    Args:
        unused: seconds for which a program has not been used before it may go, because another process may need it.
    """
    drop_damaged(folder, 0.0)
    forget_oldest(_programs(folder), most_bytes, unused)


def drop_damaged(folder: Path, since: float) -> None:
    """Drop the programs of PoCL's cache of which a file was written only in part.

    Args:
        since: programs that were not used after this time (of the system's clock) are taken to be whole: PoCL notes
            every use before it writes.
    """
    for program in _programs(folder):
        with contextlib.suppress(OSError):  # another process may clean, too
            if last_used(program) >= since and _damaged(program):
                shutil.rmtree(program, ignore_errors=True)


def _damaged(program: Path) -> bool:
    return any(cut_short(Path(file)) for file in files_under(program) if file.name.endswith((".so", ".bc")))


def _programs(folder: Path) -> list[Path]:
    return [one for group in folder.iterdir() if group.is_dir() for one in group.iterdir() if one.is_dir()]


def cut_short(path: Path) -> bool:
    """Whether an ELF file ends before its section table, or a bitcode file is no whole number of words."""
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return False
    if path.suffix == ".bc":
        return size == 0 or size % 4 != 0 or not head.startswith(b"BC")
    if len(head) < 64 or not head.startswith(b"\x7fELF"):
        return True
    (sections,) = struct.unpack_from("<Q", head, 40)
    entry, count = struct.unpack_from("<HH", head, 58)
    return bool(size < sections + entry * count)
