"""A processor that is younger than PoCL's LLVM gets a name that this LLVM knows.

LLVM calls a processor that it does not know `generic`; PoCL hands that name to clang, which refuses it
(https://github.com/pocl/pocl/issues/1049), so that no kernel compiles. LLVM 14 goes by the family of AMD's processors,
and calls the fourth generation (AVX-512) by the name of the third (AVX2): PoCL then prefers vectors of 16 floats, which
its compiler makes of two registers each. PoCL has no setting for the name. The name stands in its record of the device,
beside the target triple: there it is replaced by the name of the level of x86-64 instructions (x86-64 psABI, section
3.1.1) that the processor has, or by that of a processor with dot products of bytes.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from smartmem_rules.environment import PROCESSOR
from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.processor.flags import PROCESSORS, processor_flags

_UNKNOWN = b"generic"
_OF_FAMILY = b"znver3"
"""What LLVM 14 calls every processor of AMD's family 25: those of Zen 3, and of Zen 4."""
_NAME = re.compile(rb"[a-z][a-z0-9_.-]*")
_RECORD_BYTES = 2048
_WIDEST = 16


@dataclass(frozen=True, kw_only=True)
class Level:
    """Instructions by the name that LLVM has for processors with them.

    Attributes:
        flags: those of /proc/cpuinfo that it adds to the level below it.
        lanes: floats of a register.
    """

    name: str
    flags: frozenset[str]
    lanes: int


_LEVELS = (
    Level(
        name="icelake-server",
        flags=frozenset(
            {"avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq"}
            | {"aes", "gfni", "pclmulqdq", "sha_ni", "vaes", "vpclmulqdq", "adx", "clflushopt", "clwb", "rdpid"}
        ),
        lanes=_WIDEST,
    ),
    Level(
        name="x86-64-v4",
        flags=frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
        lanes=_WIDEST,
    ),
    Level(
        name="x86-64-v3",
        flags=frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
        lanes=8,
    ),
    Level(name="x86-64-v2", flags=frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}), lanes=4),
    Level(name="x86-64", flags=frozenset(), lanes=4),
)
_MAY_BE_ASKED = tuple(level.name for level in _LEVELS if level.name.startswith("x86-64"))

_kept: list[Any] = []
"""The names that the driver holds pointers to."""


class ProcessorError(SmartmemError):
    """The environment asks for instructions that do not exist or that the processor does not have."""


def name_processor(handle: Any, processors: Path = PROCESSORS) -> Level | None:
    """Replace the name of a processor in PoCL's record of a device: an unknown one, or each where a level is asked for.

    Args:
        handle: a `pyopencl.Device` of PoCL that no program has been built for.
        processors: where the flags of the processor are read.

    Returns:
        What kernels are compiled for now; None where nothing was to be done, or where the record or the processor
        cannot be read.

    Raises:
        ProcessorError: SMARTMEM_PROCESSOR names no level, or one that the processor does not have.
    """
    flags = processor_flags(processors)
    levels = [] if flags is None else _levels(flags)
    asked = _asked(levels)
    level = asked or next(iter(levels), None)
    if level is None:
        return None
    with _Memory.of_this_process() as memory:
        place = _place_of_name(handle.int_ptr, memory, level, asked is not None) if memory is not None else None
    if place is None:
        return None
    pointer = ctypes.c_size_t.from_address(place)
    if ctypes.string_at(pointer.value) != level.name.encode():
        text = ctypes.create_string_buffer(level.name.encode())
        _kept.append(text)
        pointer.value = ctypes.addressof(text)
    return level


def _levels(flags: frozenset[str]) -> list[Level]:
    """What a processor has, the most first."""
    return [level for at, level in enumerate(_LEVELS) if all(below.flags <= flags for below in _LEVELS[at:])]


def _asked(levels: list[Level]) -> Level | None:
    name = PROCESSOR.value()
    if not name:
        return None
    if name not in _MAY_BE_ASKED:
        raise ProcessorError(f"{PROCESSOR.name}={name}: this is none of {', '.join(_MAY_BE_ASKED)}")
    found = next((level for level in levels if level.name == name), None)
    if found is None:
        raise ProcessorError(f"{PROCESSOR.name}={name}: this processor is not known to have these instructions")
    return found


def _place_of_name(record: int, memory: _Memory, level: Level, each: bool) -> int | None:
    """Where the pointer to the name that is to be replaced stands: behind the pointer to a triple of this system."""
    width = ctypes.sizeof(ctypes.c_size_t)
    held = memory.read(record, _RECORD_BYTES)
    words = [int.from_bytes(held[at : at + width], sys.byteorder) for at in range(0, len(held) - width + 1, width)]
    for at, (triple, name) in enumerate(pairwise(words)):
        text = memory.text(name)
        replaced = text == _UNKNOWN or (text == _OF_FAMILY and level.lanes == _WIDEST)
        if (replaced or (each and _NAME.fullmatch(text))) and memory.text(triple).startswith(b"x86_64-"):
            return record + (at + 1) * width
    return None


class _Memory:
    """This process's memory as the system reads it, so that looking at what may be no pointer is safe.

    Which addresses are mapped is no answer: another thread may unmap them before they are read.
    """

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    @contextmanager
    def of_this_process(cls) -> Iterator[_Memory | None]:
        try:
            file = os.open("/proc/self/mem", os.O_RDONLY)
        except OSError:
            yield None
            return
        try:
            yield cls(file)
        finally:
            os.close(file)

    def read(self, address: int, most: int) -> bytes:
        """The bytes from an address on, as many as can be read."""
        try:
            return os.pread(self._file, most, address)
        except (OSError, OverflowError):
            return b""

    def text(self, address: int, most: int = 64) -> bytes:
        """The text that ends with a zero byte at an address; empty where there is none."""
        return self.read(address, most).partition(b"\0")[0]
