"""Compiled programs on disk, by source, device and driver.

The folder is `programs` of the cache folder (`$SMARTMEM_CACHE`; `off` keeps nothing).  Each file holds one program's
binary behind its checksum, is written beside its place and moved there, so that processes may share the folder, and a
damaged one is like none.  The least recently used files go when all together exceed the bound.

PoCL keeps compiled kernels itself, by source, device and version, and would compile everything once more to give
binaries away: its cache is put into the same folder (`pocl`) and kept within a bound; `$POCL_CACHE_DIR` puts it
elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from smartmem_rules.resources import cache_folder
from smartmem_rules.whole_files import write_whole

if TYPE_CHECKING:
    from smartmem_rules.runtime.devices import Device

_MAGIC = b"SMRPROG1"
_MOST_BYTES = 256 << 20
_DRIVER_BYTES = 1 << 30
DRIVER_ROOM = 32 << 20
"""Free bytes on the disk to which a driver compiles, below which nothing is compiled: PoCL ends the process when a
write of its fails."""
_DAY = 86400.0


class ProgramCache:
    """Binaries of programs in a folder.

    Args:
        folder: None keeps nothing.
        most_bytes: what all files together may hold.
    """

    def __init__(self, folder: Path | None, most_bytes: int = _MOST_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes

    @staticmethod
    def of(device: Device) -> ProgramCache:
        """The cache for a device; one that keeps nothing where the driver does it."""
        base = None if any(one.effect == "driver_keeps_programs" for one in device.workarounds) else cache_folder()
        return ProgramCache(None if base is None else base / "programs")

    @staticmethod
    def key(text: str, options: Iterable[str], device: Device) -> str:
        """What a program is kept under: all that its binary depends on."""
        parts = (text, *options, "", device.platform, device.name, device.driver, device.version)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def read(self, key: str) -> bytes | None:
        """A program's binary; None where there is none or it is damaged."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head, digest, binary = data[:8], data[8:40], data[40:]
        if head != _MAGIC or hashlib.sha256(binary).digest() != digest:
            path.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return binary

    def write(self, key: str, binary: bytes) -> None:
        """Keep a program's binary; where that is impossible nothing happens."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / key, _MAGIC + hashlib.sha256(binary).digest() + binary)
            forget_oldest(self.folder.iterdir(), self.most_bytes, 0.0)


def keep_driver_cache() -> None:
    """Give PoCL a folder for its files and look after it; to be called before the first OpenCL call of the process.

    It is ours, unless `$POCL_CACHE_DIR` names another one; a folder for this process alone where that one is read-only
    or its disk is full, with which PoCL would refuse every kernel or end the process.
    """
    if "POCL_CACHE_DIR" in os.environ:
        return
    base = cache_folder()
    folder = _drivers_own_folder() if base is None else base / "pocl"
    if folder is not None and takes_files(folder):
        if base is not None:
            os.environ["POCL_CACHE_DIR"] = str(folder)
            with contextlib.suppress(OSError):
                _look_after(folder)
        return
    for parent in (tempfile.gettempdir(), "/dev/shm"):
        if takes_files(Path(parent), make=False):
            own = tempfile.mkdtemp(prefix="smartmem-pocl-", dir=parent)
            atexit.register(shutil.rmtree, own, ignore_errors=True)
            os.environ["POCL_CACHE_DIR"] = own
            return


def takes_files(folder: Path, make: bool = True) -> bool:
    """Whether files can be written into a folder, and there is room for those of a compiler."""
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError:
        return False
    return free_bytes(folder) >= DRIVER_ROOM


def free_bytes(folder: Path) -> int:
    """The bytes that this user may still write to the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


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
            if _last_used(program) >= since and _damaged(program):
                shutil.rmtree(program, ignore_errors=True)


def _damaged(program: Path) -> bool:
    return any(cut_short(Path(file)) for file in _files(program) if file.name.endswith((".so", ".bc")))


def _programs(folder: Path) -> list[Path]:
    return [one for group in folder.iterdir() if group.is_dir() for one in group.iterdir() if one.is_dir()]


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """All files under a folder; what vanishes on the way is left out."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry


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


def forget_oldest(places: Iterable[Path], most_bytes: int, unused: float) -> None:
    """Remove the least recently used files or folders until the rest fit."""
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            found.append((_last_used(place), _bytes(place), place))
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


def _last_used(place: Path) -> float:
    marker = place / "last_accessed"  # PoCL's own
    return (marker if marker.exists() else place).stat().st_mtime


def _bytes(place: Path) -> int:
    if place.is_dir():
        return sum(file.stat().st_size for file in _files(place))
    return place.stat().st_size
