"""Puts new rows behind those of a cache: one launch for many buffers, where copies take longer to ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from smartmem_rules.emit.c.program import render
from smartmem_rules.plan.artefact import Source
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.memory import MemoryObject, RunError
from smartmem_rules.runtime.contexts.numbers import set_number
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs.compiling import Programs

MOST = 32
"""Buffers of one launch: devices take at least 1024 bytes of arguments."""
WORD = 4


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Elements of a position in a buffer: of one sequence, and of all."""

    own: int
    row: int


class _Launch:
    """The kernel for some of the buffers."""

    def __init__(self, rows: Mapping[str, int], sequences: int, device: Device, context: Any) -> None:
        size = WORD if all(row % (WORD * sequences) == 0 for row in rows.values()) else 1
        parts = [_Part(own=row // sequences // size, row=row // size) for row in rows.values()]
        text = render("append_rows.cl", parts=parts, type="uint" if size == WORD else "uchar")
        source = Source(entry="smr_append", text=text, arguments=(), global_size=(1,), local_size=None)
        self._kernel = Programs(context, device, [source], ["append"]).kernel(source)
        self._names = tuple(rows)
        self._own = max(part.own for part in parts)
        self._bound: list[Any] = [None] * (2 * len(parts))

    def enqueue(self, rows: Mapping[str, Any], buffers: Mapping[str, Any], at: _At, queue: Any) -> None:
        import pyopencl as cl

        memory = [held for name in self._names for held in (rows[name], buffers[name])]
        for place, (new, old) in enumerate(zip(memory, self._bound, strict=True)):
            if new is not old:
                self._kernel.set_arg(place, new)
        self._bound = memory
        for place, number in enumerate((at.place, at.first, at.sequences), len(memory)):
            set_number(self._kernel, place, number)
        cl.enqueue_nd_range_kernel(queue, self._kernel, (self._own * at.sequences,), None)


@dataclass(frozen=True, kw_only=True)
class _At:
    """Neighbouring sequences that have as many positions.

    Attributes:
        place: how many.
    """

    place: int
    first: int
    sequences: int


class Appending:
    """The kernels that put a position of each sequence into the buffers of a cache.

    Args:
        rows: the bytes of a position in each buffer, of all sequences, by the names of inputs.
    """

    def __init__(self, rows: Mapping[str, int], sequences: int, device: Device, context: Any) -> None:
        names = list(rows)
        self._launches = [
            _Launch({name: rows[name] for name in names[start : start + MOST]}, sequences, device, context)
            for start in range(0, len(names), MOST)
        ]

    def enqueue(
        self, rows: Mapping[str, MemoryObject], buffers: Mapping[str, MemoryObject], places: Sequence[int], queue: Any
    ) -> None:
        """Put rows behind what sequences have.

        Args:
            rows, buffers: of one position and of all, by the names of inputs.
            places: how many positions each sequence has.

        Raises:
            RunError: the device refuses the kernel.
        """
        import pyopencl as cl

        try:
            for at in _neighbours(places):
                for launch in self._launches:
                    launch.enqueue(rows, buffers, at, queue)
        except cl.Error as error:
            raise RunError(f"the device refuses to put new rows into the cache: {error}") from error


def _neighbours(places: Sequence[int]) -> Iterator[_At]:
    first = 0
    for place, alike in groupby(places):
        count = len(list(alike))
        yield _At(place=place, first=first, sequences=count)
        first += count
