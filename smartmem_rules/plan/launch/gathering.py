"""Tensors that only one launch knows, as parts of a few larger ones.

The host takes some hundred nanoseconds for each argument of a kernel that it enqueues, and a launch that joins sixty
kernels has hundreds of arguments. A launch whose work-groups take tasks in order therefore gets its weights, and all
that lies in memory between its kernels, as one argument each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.plan.artefact import Place, Slot
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored, row_major
from smartmem_rules.plan.kernel.storage import SLACK, stored_bytes
from smartmem_rules.plan.kernel.work_items import Note, Part
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import TensorType

HOME = "int32"
"""Elements of the larger tensors."""
ALIGNMENT = 512
"""Bytes of which the parts of a larger tensor begin at multiples."""
NOTE_BYTES = 4
MOST_NOTES = (SLACK - NOTE_BYTES) // NOTE_BYTES
"""Notes that have room behind a tensor's elements."""


def note_element(stored: Stored, note: Note) -> int:
    """The int of a tensor's memory that is a note, behind its elements."""
    return -(-stored_bytes(stored) // NOTE_BYTES) + note.place


@dataclass(frozen=True)
class FewArguments:
    """Launches that take few arguments, and the tensors and places in memory that are left.

    Attributes:
        slots: the pieces of memory that intermediates share.
    """

    launches: tuple[Launch, ...]
    tensors: Mapping[str, Stored]
    slots: list[Slot]
    placement: Mapping[str, Place]


def gathered(
    launches: Sequence[Launch],
    tensors: Mapping[str, Stored],
    placement: Mapping[str, Place],
    slots: Sequence[Slot],
    border: Collection[str],
) -> FewArguments:
    """The launches whose work-groups take tasks in order, with the tensors that only they know gathered.

    Args:
        tensors: all.
        placement: of intermediates; those of one launch lie beside each other as before, and share memory as before.
        border: the model's inputs and outputs.
    """
    found: list[Launch] = []
    left, places = dict(tensors), dict(placement)
    for launch in launches:
        if not isinstance(launch, Ordered) or not launch.group_items:
            found.append(launch)
            continue
        others = {t for other in launches if other is not launch for t in (*other.reads, *other.writes)}
        own = _own(launch, tensors, others | {*border})
        parts, larger = _constants(launch, [t for t in own if t.role == "constant"])
        moving, arena = _intermediates(launch, [t for t in own if t.role == "intermediate"], placement)
        for name in (*parts, *moving):
            del left[name]
            places.pop(name, None)
        left |= larger | arena
        found.append(replace(launch, held=parts | moving))
    kept = sorted({place.slot for place in places.values()})
    number = {slot: new for new, slot in enumerate(kept)}
    return FewArguments(
        launches=tuple(found),
        tensors=left,
        slots=[slots[slot] for slot in kept],
        placement={name: Place(number[place.slot], place.offset) for name, place in places.items()},
    )


def _own(launch: Ordered, tensors: Mapping[str, Stored], others: Collection[str]) -> list[Stored]:
    """The buffers that only this launch takes, its counters aside."""
    written = {name for step in launch.steps for name in step.writes}
    names = dict.fromkeys(name for step in launch.steps for name in (*step.reads, *step.writes))
    own = [tensors[name] for name in names if name not in others]
    # a constant that a kernel writes is memory of one run, and begins as the numbers that it has
    return [t for t in own if t.layout.memory == "buffer" and not (t.role == "constant" and t.name in written)]


def _constants(launch: Ordered, own: Sequence[Stored]) -> tuple[dict[str, Part], dict[str, Stored]]:
    name, parts, pieces, end = f"{launch.name}@constants", {}, [], 0
    for stored in own:
        if stored.packed is None:
            continue
        data = np.ascontiguousarray(stored.packed).reshape(-1).view(np.uint8)
        whole = np.zeros(_aligned(max(data.size, stored_bytes(stored)) + SLACK), np.uint8)
        whole[: data.size] = data
        parts[stored.name] = Part(name, end)
        pieces.append(whole)
        end += whole.size
    if not parts:
        return {}, {}
    return parts, {name: _larger(name, "constant", np.concatenate(pieces).view(np.int32))}


def _intermediates(
    launch: Ordered, own: Sequence[Stored], placement: Mapping[str, Place]
) -> tuple[dict[str, Part], dict[str, Stored]]:
    name, placed = f"{launch.name}@intermediates", [t for t in own if t.name in placement]
    ends: dict[int, int] = {}
    for stored in placed:
        place = placement[stored.name]
        ends[place.slot] = max(ends.get(place.slot, 0), place.offset + stored_bytes(stored) + SLACK)
    begins, size = {}, 0
    for slot, end in sorted(ends.items()):
        begins[slot] = size
        size += _aligned(end)
    if not placed:
        return {}, {}
    parts = {t.name: Part(name, begins[placement[t.name].slot] + placement[t.name].offset) for t in placed}
    return parts, {name: replace(_larger(name, "intermediate", np.zeros(0, np.int32), size // 4), packed=None)}


def _larger(name: str, role: str, packed: np.ndarray[tuple[int, ...], np.dtype[np.int32]], count: int = 0) -> Stored:
    return Stored(
        name=name,
        type=TensorType(HOME, (count or packed.size,)),
        layout=row_major(1),
        role=role,
        storage=HOME,
        packed=packed,
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
