"""A processor that is younger than PoCL's LLVM gets a name that this LLVM knows.

LLVM calls a processor that it does not know `generic`; PoCL hands that name to clang, which refuses it
(https://github.com/pocl/pocl/issues/1049), so that no kernel compiles. PoCL has no setting for the name. The name
stands in its record of the device, beside the target triple: there it is replaced by the name of the level of x86-64
instructions (x86-64 psABI, section 3.1.1) that the processor has, which is also what PoCL's own library of built-in
functions is chosen by.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from pathlib import Path
from typing import Any

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


def name_processor(handle: Any, processors: Path = Path("/proc/cpuinfo")) -> str | None:
    """Replace the name of an unknown processor in PoCL's record of a device.

    Args:
        handle: a `pyopencl.Device` of PoCL that no program has been built for.
        processors: where the flags of the processor are read.

    Returns:
        The name now; None where nothing was to be done, or where the record or the processor cannot be read.
    """
    name = _level(processors)
    memory = _Memory.of_this_process()
    if name is None or memory is None:
        return None
    place = _place_of_name(handle.int_ptr, memory)
    if place is None:
        return None
    text = ctypes.create_string_buffer(name.encode())
    _kept.append(text)
    ctypes.c_size_t.from_address(place).value = ctypes.addressof(text)
    return name


def _level(processors: Path) -> str | None:
    try:
        lines = processors.read_text().splitlines()
    except OSError:
        return None
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), None)
    if flags is None:
        return None
    levels = list(_LEVELS)
    having = (name for at, name in enumerate(levels) if all(_LEVELS[below] <= flags for below in levels[at:]))
    return next(having, "x86-64")


def _place_of_name(record: int, memory: _Memory) -> int | None:
    """Where the pointer to the unknown name stands: behind the pointer to a triple of this system."""
    width = ctypes.sizeof(ctypes.c_size_t)
    for place in range(record, record + _RECORD_BYTES, width):
        if not memory.readable(place, 2 * width):
            return None
        triple, name = (ctypes.c_size_t.from_address(place + at).value for at in (0, width))
        if memory.text(name) == _UNKNOWN and (memory.text(triple) or b"").startswith(b"x86_64-"):
            return place + width
    return None


class _Memory:
    """The readable parts of this process's memory, so that looking at what may be no pointer is safe."""

    def __init__(self, parts: list[tuple[int, int]]) -> None:
        self._parts = sorted(parts)
        self._starts = [start for start, _ in self._parts]

    @classmethod
    def of_this_process(cls) -> _Memory | None:
        try:
            lines = Path("/proc/self/maps").read_text().splitlines()
        except OSError:
            return None
        spans = [line.split()[0].split("-") for line in lines if line.split()[1].startswith("r")]
        return cls([(int(start, 16), int(end, 16)) for start, end in spans])

    def readable(self, address: int, count: int) -> bool:
        at = bisect_right(self._starts, address) - 1
        return at >= 0 and address + count <= self._parts[at][1]

    def text(self, address: int, most: int = 64) -> bytes | None:
        """The text that ends with a zero byte at an address."""
        return ctypes.string_at(address, most).partition(b"\0")[0] if self.readable(address, most) else None
