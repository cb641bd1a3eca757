"""Memory planning: which intermediates share a piece of device memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smartmem_rules.plan.model import Kernel, PlanError, Slot, Stored
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest

TEXEL_LANES = 4


@dataclass(frozen=True)
class Memory:
    """Bytes of device memory for intermediates.

    Attributes:
        reused: with the slots.
        separate: with one buffer or image for each tensor.
        bound: no plan of this kernel order needs less: the largest sum of bytes that are live at once.
    """

    reused: int
    separate: int
    bound: int


@dataclass(frozen=True)
class _Need:
    """A tensor's demand: the memory, and the first and last kernel at which its contents count."""

    tensor: str
    memory: str
    bytes: int
    size: tuple[int, int]
    storage: str
    first: int
    last: int


def item_bytes(storage: str) -> int:
    """The size of an element in memory."""
    return int(storage_dtype(storage).itemsize)


def stored_bytes(tensor: Stored) -> int:
    """The bytes that a tensor takes at most, the lanes that an image leaves unused included."""
    if tensor.layout.memory == "image":
        return (
            largest(math.prod(tensor.layout.image_size(tensor.type.shape))) * TEXEL_LANES * item_bytes(tensor.storage)
        )
    return largest(tensor.type.elements) * item_bytes(tensor.storage)


def assign_slots(tensors: Mapping[str, Stored], kernels: Sequence[Kernel]) -> tuple[list[Slot], dict[str, int]]:
    """The slots of all intermediates and the number of each one's slot.

    Tensors whose lives touch never share a slot, so that no kernel writes what it reads.  The largest are placed
    first, each in the smallest slot that is free for its whole life; an image shares only with images of its size
    and storage.

    Raises:
        PlanError: a kernel reads an intermediate that no kernel before it writes.
    """
    slots: list[Slot] = []
    members: list[list[_Need]] = []
    placement: dict[str, int] = {}
    for need in sorted(_needs(tensors, kernels), key=lambda n: (-n.bytes, n.first, n.tensor)):
        free = [n for n, slot in enumerate(slots) if _fits(need, slot) and not _meets(need, members[n])]
        if free:
            place = min(free, key=lambda n: slots[n].bytes)
        else:
            place = len(slots)
            slots.append(Slot(need.memory, need.bytes, need.size, need.storage))
            members.append([])
        members[place].append(need)
        placement[need.tensor] = place
    return slots, placement


def memory_use(tensors: Mapping[str, Stored], kernels: Sequence[Kernel], slots: Iterable[Slot]) -> Memory:
    """What the slots save."""
    needs = _needs(tensors, kernels)
    live = [0] * (len(kernels) + 1)
    for need in needs:
        live[need.first] += need.bytes
        live[need.last + 1] -= need.bytes
    total = peak = 0
    for change in live:
        total += change
        peak = max(peak, total)
    return Memory(sum(slot.bytes for slot in slots), sum(need.bytes for need in needs), peak)


def _needs(tensors: Mapping[str, Stored], kernels: Sequence[Kernel]) -> list[_Need]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, kernel in enumerate(kernels):
        for name in kernel.reads:
            if tensors[name].role != "intermediate":
                continue
            if name in kernel.writes:  # a scan reads its own earlier steps
                continue
            if name not in first:
                raise PlanError(f"the kernel {kernel.name} reads {name!r}, which no kernel before it writes")
            last[name] = place
        for name in kernel.writes:
            if tensors[name].role == "intermediate":
                first.setdefault(name, place)
                last[name] = place
    return [_need(tensors[name], first[name], last[name]) for name in first]


def _need(tensor: Stored, first: int, last: int) -> _Need:
    image = tensor.layout.memory == "image"
    width, height = tensor.layout.image_size(tensor.type.shape) if image else (0, 0)
    size = largest(width), largest(height)
    # bytes are untyped: buffers of different element types share
    storage = tensor.storage if image else ""
    return _Need(tensor.name, tensor.layout.memory, stored_bytes(tensor), size, storage, first, last)


def _fits(need: _Need, slot: Slot) -> bool:
    return (need.memory, need.size, need.storage) == (slot.memory, slot.size, slot.storage) and need.bytes <= slot.bytes


def _meets(need: _Need, members: Iterable[_Need]) -> bool:
    return any(need.first <= other.last and other.first <= need.last for other in members)
