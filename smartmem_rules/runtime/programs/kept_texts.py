"""Where the kernel of a text is that was compiled together with others, for plans that have some of them only.

In the folder `texts` of the cache folder lies a file for each text: its program's key, and how the kernel is called
there. Where the driver keeps what it compiles, by source and not by key, the source lies beside them. A text whose
program has gone since is like one that was never compiled.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs.program_cache import ProgramCache

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class KernelText:
    """What makes two sources the same kernel code."""

    entry: str
    text: str
    options: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Joined:
    """The text of a program of several kernels, or of one; `entries` are their names in it."""

    text: str
    options: tuple[str, ...]
    entries: Mapping[KernelText, str]


@dataclass(frozen=True)
class Home:
    """A kernel in a program: the program's key, and the kernel's name there."""

    program: str
    entry: str


class KeptTexts:
    """The homes of texts.

    Args:
        files: where they are kept; by default the user's.
    """

    def __init__(self, device: Device, files: ProgramCache | None = None) -> None:
        base = cache_folder()
        own = ProgramCache(None if base is None else base / "texts", _MOST_BYTES)
        self._files = own if files is None else files
        self._device = device
        self._keeps_sources = bool(device.workaround("driver_keeps_programs"))

    def home(self, text: KernelText) -> Home | None:
        """Where the kernel of a text is, if it was compiled before."""
        found = self._files.read(self._key(text))
        if found is None:
            return None
        program, _, entry = found.decode().partition(" ")
        return Home(program, entry)

    def source(self, home: Home) -> str | None:
        """The text of a program that the driver has compiled; None where only binaries are kept."""
        found = self._files.read(home.program) if self._keeps_sources else None
        return None if found is None else zlib.decompress(found).decode()

    def keep(self, joined: Joined, program: str) -> None:
        """Note where texts are.

        Args:
            program: the key of their program.
        """
        homes = {self._key(text): f"{program} {entry}".encode() for text, entry in joined.entries.items()}
        source = {program: zlib.compress(joined.text.encode(), 1)} if self._keeps_sources else {}
        self._files.write_all({**source, **homes})

    def _key(self, text: KernelText) -> str:
        return self._files.key(f"the home of {text.entry}\0{text.text}", text.options, self._device)
