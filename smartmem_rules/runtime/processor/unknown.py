"""A processor that is younger than PoCL's LLVM gets a name that this LLVM knows.

LLVM calls a processor that it does not know `generic`; PoCL hands that name to clang, which refuses it
(https://github.com/pocl/pocl/issues/1049), so that no kernel compiles. PoCL has no setting for the name. The name
stands in its record of the device, beside the target triple: there it is replaced by the name of the level of x86-64
instructions (x86-64 psABI, section 3.1.1) that the processor has, which is also what PoCL's own library of built-in
functions is chosen by.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from smartmem_rules.runtime.processor.flags import PROCESSORS, processor_flags

_UNKNOWN = b"generic"
_RECORD_BYTES = 2048
_LEVELS = {
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    "x86-64-v2": frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
}
"""The flags of /proc/cpuinfo that each level adds to the one below it."""

_kept: list[Any] = []
"""The names that the driver holds pointers to."""


def name_processor(handle: Any, processors: Path = PROCESSORS) -> str | None:
    """Replace the name of an unknown processor in PoCL's record of a device.

    Args:
        handle: a `pyopencl.Device` of PoCL that no program has been built for.
        processors: where the flags of the processor are read.

    Returns:
        The name now; None where nothing was to be done, or where the record or the processor cannot be read.
    """
    name = _level(processors)
    if name is None:
        return None
    with _Memory.of_this_process() as memory:
        place = _place_of_name(handle.int_ptr, memory) if memory is not None else None
    if place is None:
        return None
    text = ctypes.create_string_buffer(name.encode())
    _kept.append(text)
    ctypes.c_size_t.from_address(place).value = ctypes.addressof(text)
    return name


def _level(processors: Path) -> str | None:
    flags = processor_flags(processors)
    if flags is None:
        return None
    levels = list(_LEVELS)
    having = (name for at, name in enumerate(levels) if all(_LEVELS[below] <= flags for below in levels[at:]))
    return next(having, "x86-64")


def _place_of_name(record: int, memory: _Memory) -> int | None:
    """Where the pointer to the unknown name stands: behind the pointer to a triple of this system."""
    width = ctypes.sizeof(ctypes.c_size_t)
    held = memory.read(record, _RECORD_BYTES)
    words = [int.from_bytes(held[at : at + width], sys.byteorder) for at in range(0, len(held) - width + 1, width)]
    for at, (triple, name) in enumerate(pairwise(words)):
        if memory.text(name) == _UNKNOWN and memory.text(triple).startswith(b"x86_64-"):
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
