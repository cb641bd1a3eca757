"""Compiled programs on disk, by source, device and driver.

The folder is `programs` of the cache folder (`$SMARTMEM_CACHE`; `off` keeps nothing).  Each file holds one program's
binary behind its checksum, is written beside its place and moved there, so that processes may share the folder, and a
damaged one is like none.  The least recently used files go when all together exceed the bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.kept_files import forget_oldest, is_looked_through
from smartmem_rules.whole_files import write_whole

_MAGIC = b"SMRPROG1"
_MOST_BYTES = 256 << 20


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
        self.write_all({key: binary})

    def write_all(self, binaries: Mapping[str, bytes]) -> None:
        """Keep several files, in their order; where that is impossible nothing happens."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            looks = False
            for key, binary in binaries.items():
                digest = hashlib.sha256(binary).digest()
                write_whole(self.folder / key, _MAGIC + digest + binary)
                looks = looks or is_looked_through(digest, len(binary), self.most_bytes)
            if looks:
                forget_oldest(self.folder.iterdir(), self.most_bytes, 0.0)
