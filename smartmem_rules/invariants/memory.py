"""Tensors that are needed at the same time never share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smartmem_rules.invariants.order import awaited
from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Place, Slot
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.storage import stored_bytes

STAGE = "memory"


@dataclass
class _Life:
    """When a tensor's contents count, in steps of launches, and where they lie."""

    tensor: str
    first: int
    last: int
    begin: int
    end: int


def check_memory(
    kernels: Sequence[Kernel], tensors: Mapping[str, Stored], slots: Sequence[Slot], placement: Mapping[str, Place]
) -> None:
    """Check the places of intermediates against the order of the launches.

    A tensor may lie where another one ends only if the launch that makes the one is known to write it in place of the
    other (`Kernel.in_place`), or, in an ordered launch, if the step that writes waits for all that use the other.

    Raises:
        InvariantError: an intermediate has no place, does not fit, or shares memory with one that is needed too.
    """
    lives = _lives(kernels, tensors, placement)
    for name, stored in tensors.items():
        if stored.role == "intermediate" and stored.layout.memory != "scratch" and name in lives:
            _check_fits(stored, slots, placement)
    replaced = {(new, old) for kernel in kernels for new, old in kernel.in_place.items()}
    by_slot: dict[int, list[_Life]] = {}
    for life in lives.values():
        by_slot.setdefault(placement[life.tensor].slot, []).append(life)
    ordered = {n for n, kernel in enumerate(kernels) if kernel.form == "ordered"}
    for slot in by_slot.values():
        _check_slot(slot, kernels, ordered, replaced)


def _lives(
    kernels: Sequence[Kernel], tensors: Mapping[str, Stored], placement: Mapping[str, Place]
) -> dict[str, _Life]:
    found: dict[str, _Life] = {}
    for number, kernel in enumerate(kernels):
        for name in dict.fromkeys((*kernel.reads, *kernel.writes)):
            if name not in placement:
                continue
            if name not in found:
                begin = placement[name].offset
                found[name] = _Life(name, number, number, begin, begin + max(1, stored_bytes(tensors[name])))
            found[name].last = number
    return found


def _check_fits(stored: Stored, slots: Sequence[Slot], placement: Mapping[str, Place]) -> None:
    place = placement.get(stored.name)
    if place is None or not 0 <= place.slot < len(slots):
        raise InvariantError(STAGE, "", stored.name, "it has no place in memory")
    slot = slots[place.slot]
    if (slot.memory == "image") != (stored.layout.memory == "image"):
        raise InvariantError(STAGE, "", stored.name, f"a {stored.layout.memory} in a piece for a {slot.memory}")
    if place.offset < 0 or place.offset + stored_bytes(stored) > slot.bytes:
        raise InvariantError(
            STAGE, "", stored.name, f"{stored_bytes(stored)} bytes from {place.offset} on in a piece of {slot.bytes}"
        )


def _check_slot(
    slot: Sequence[_Life], kernels: Sequence[Kernel], ordered: set[int], replaced: set[tuple[str, str]]
) -> None:
    """Of tensors in the order of their first writes each is compared with those that are still needed."""
    live: list[_Life] = []
    for life in sorted(slot, key=lambda one: (one.first, one.last)):
        live = [other for other in live if other.last >= life.first]
        for other in live:
            if max(life.begin, other.begin) >= min(life.end, other.end):
                continue
            if life.first == other.last:
                if (life.tensor, other.tensor) in replaced:
                    continue
                if life.first in ordered and _waits(kernels[life.first], life.tensor, other.tensor):
                    continue
            name = kernels[life.first].name
            raise InvariantError(
                STAGE, name, life.tensor, f"it is written over {other.tensor!r}, which is needed still"
            )
        live.append(life)


def _waits(kernel: Kernel, new: str, old: str) -> bool:
    """Whether the steps of an ordered launch that touch one tensor wait for all that touch the one that lay there."""
    uses = [{name for leaf in step.leaves for name in (*leaf.reads, *leaf.writes)} for step in kernel.steps]
    users = {n for n, names in enumerate(uses) if old in names}
    makers = [n for n, names in enumerate(uses) if new in names]
    return all(users - {n} <= awaited(kernel, n) and n not in users for n in makers) or (
        all(users <= awaited(kernel, n) | {n} for n in makers)
    )
