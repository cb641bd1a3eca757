"""The memory of keys and values on the device: positions first, so that it grows behind what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smartmem_rules.decoding.appending import Appending
from smartmem_rules.decoding.errors import CacheFullError
from smartmem_rules.decoding.model.parts import Part
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.host_memory import available_bytes
from smartmem_rules.runtime.contexts.memory import MemoryObject, RunError
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.plan_file import SLACK


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large a cache is, in tokens of each sequence.

    Attributes:
        block: by how many it grows.
        bound: how many it never exceeds.
    """

    sequences: int
    block: int
    bound: int

    def capacity(self, positions: int) -> int:
        """For how many positions there is memory where so many are needed, which is within the bound."""
        return min(-(-positions // self.block) * self.block, self.bound)


class Cache:
    """A buffer for each part, [positions, sequences, heads, channels].

    Attributes:
        length: how many positions are filled.
        capacity: for how many there is memory.
        buffers: by the name of the part's input.
        spare: as large a buffer for each, where a step writes the whole cache anew; else empty.
    """

    def __init__(self, parts: Sequence[Part], sizes: Sizes, device: Device, context: Any, twice: bool) -> None:
        """Args:
        twice: whether steps write the whole cache anew, into the other one of two buffers.
        """
        self.sizes = sizes
        self.length = 0
        self.capacity = 0
        self.buffers: dict[str, Any] = {}
        self.spare: dict[str, Any] = {}
        self._rows = {part.input: part.row_bytes(sizes.sequences) for part in parts}
        self._device = device
        self._context = context
        self._twice = twice
        self._appending: Appending | None = None  # compiled when the first row comes

    @property
    def bytes(self) -> int:
        """What the cache takes on the device now."""
        return self.capacity * self.bytes_per_token

    @property
    def bytes_per_token(self) -> int:
        """What one more token of every sequence takes."""
        return sum(self.rows)

    @property
    def rows(self) -> tuple[int, ...]:
        """The bytes of a position in each of the buffers, of all sequences."""
        return tuple(self._rows.values()) * (1 + self._twice)

    def clear(self) -> None:
        """Forget what is there; the memory stays."""
        self.length = 0

    def reserve(self, positions: int, queue: Any) -> None:
        """Have memory for so many positions, in whole blocks; what is there is copied on the device.

        Raises:
            CacheFullError: they exceed the bound.
            RunError: the device has too little memory; the cache is what it was.
        """
        import pyopencl as cl

        if positions > self.sizes.bound:
            raise CacheFullError(
                f"the cache is bound to {self.sizes.bound} tokens of each sequence, and {positions} are needed; give a "
                "greater bound, a shorter prompt, or ask for fewer tokens"
            )
        if positions <= self.capacity:
            return
        capacity = self.sizes.capacity(positions)
        self._refuse_too_much(capacity)
        try:
            for buffers in (self.buffers, self.spare) if self._twice else (self.buffers,):
                for name, row in self._rows.items():
                    grown = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, capacity * row + SLACK)
                    if self.length and buffers is self.buffers:
                        cl.enqueue_copy(queue, grown, buffers[name], byte_count=self.length * row)
                        queue.finish()
                    buffers[name] = grown  # the smaller one goes before the next one grows
        except (cl.MemoryError, MemoryError) as error:
            raise RunError(self._lack(capacity)) from error
        self.capacity = capacity

    def append(self, rows: Mapping[str, MemoryObject], places: Sequence[int], queue: Any) -> None:
        """Put one new position of each sequence behind what it has, and make all of them one longer.

        Args:
            rows: buffers of one position by the names of the inputs.
            places: the position of each sequence.

        Raises:
            RunError: the device refuses that.
        """
        if self._appending is None:
            self._appending = Appending(self._rows, self.sizes.sequences, self._device, self._context)
        self._appending.enqueue(rows, self.buffers, places, queue)
        self.length += 1

    def swap(self) -> None:
        """The spare buffers, into which a step has written one position more, become the cache."""
        self.buffers, self.spare = self.spare, self.buffers
        self.length += 1

    def new_rows(self) -> dict[str, MemoryObject]:
        """Buffers for one position of each part, by the names of the inputs."""
        import pyopencl as cl

        return {
            name: cl.Buffer(self._context, cl.mem_flags.READ_WRITE, row + SLACK) for name, row in self._rows.items()
        }

    def _refuse_too_much(self, capacity: int) -> None:
        row, most = max(self._rows.values()), self._device.largest_allocation
        if capacity * row + SLACK > most:
            raise RunError(
                f"{self._device.name} allocates at most {most} bytes at once, and a cache of {capacity} tokens has a "
                f"buffer of {capacity * row}; give a bound of at most {(most - SLACK) // row}"
            )
        free = available_bytes() if self._device.host_memory else None
        if free is not None and capacity * self.bytes_per_token > free:
            raise RunError(self._lack(capacity))

    def _lack(self, capacity: int) -> str:
        needed = capacity * self.bytes_per_token / 2**20
        return (
            f"{self._device.name} has too little memory for a cache of {capacity} tokens ({needed:.0f} MiB); give a "
            "smaller bound or block, or fewer sequences"
        )
