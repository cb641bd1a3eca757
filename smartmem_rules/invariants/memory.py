"""Tensors that are needed at the same time never share memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Place, Slot
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.records import dataclass

STAGE = "memory"


@dataclass(kw_only=True)
class _Life:
    """When a tensor's contents count, in steps of launches, and where they lie."""

    tensor: str
    first: int
    last: int
    begin: int
    end: int


def check_memory(
    launches: Sequence[Launch], tensors: Mapping[str, Stored], slots: Sequence[Slot], placement: Mapping[str, Place]
) -> None:
    """Check the places of intermediates against the order of the launches.

    A tensor may lie where another one ends only if the launch that makes the one is known to write it in place of the
    other (`Launch.in_place`), or, in an ordered launch, if the step that writes waits for all that use the other.

    Raises:
        InvariantError: an intermediate has no place, does not fit, or shares memory with one that is needed too.
    """
    lives = _lives(launches, tensors, placement)
    for name, stored in tensors.items():
        if stored.role == "intermediate" and stored.layout.memory != "scratch" and name in lives:
            _check_fits(stored, slots, placement)
    replaced = {(new, old) for launch in launches for new, old in launch.in_place.items()}
    touching = [_touching(launch) for launch in launches]
    by_slot: dict[int, list[_Life]] = {}
    for life in lives.values():
        by_slot.setdefault(placement[life.tensor].slot, []).append(life)
    for slot in by_slot.values():
        _check_slot(slot, launches, touching, replaced)


def _lives(
    launches: Sequence[Launch], tensors: Mapping[str, Stored], placement: Mapping[str, Place]
) -> dict[str, _Life]:
    found: dict[str, _Life] = {}
    for number, launch in enumerate(launches):
        for name in dict.fromkeys((*launch.reads, *launch.writes)):
            if name not in placement:
                continue
            if name not in found:
                begin = placement[name].offset
                found[name] = _Life(
                    tensor=name, first=number, last=number, begin=begin, end=begin + max(1, stored_bytes(tensors[name]))
                )
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
    slot: Sequence[_Life],
    launches: Sequence[Launch],
    touching: Sequence[Mapping[str, frozenset[int]]],
    replaced: set[tuple[str, str]],
) -> None:
    """Of tensors in the order of their first writes each is compared with those that are still needed there."""
    live: list[_Life] = []  # in the order of their places, none over another one
    passing: list[_Life] = []  # needed for the last time where another one is written over them
    ending: list[tuple[int, int, _Life]] = []
    for number, life in enumerate(sorted(slot, key=lambda one: (one.first, one.last))):
        while ending and ending[0][0] < life.first:
            gone = heappop(ending)[2]
            at = bisect_left(live, gone.begin, key=_begin)
            if at < len(live) and live[at] is gone:
                del live[at]
        passing = [other for other in passing if other.last >= life.first]
        first = last = bisect_left(live, life.begin, key=_begin)
        first -= first > 0 and live[first - 1].end > life.begin
        while last < len(live) and live[last].begin < life.end:
            last += 1
        for other in [*live[first:last], *(one for one in passing if one.begin < life.end and life.begin < one.end)]:
            _check_written_over(life, other, launches[life.first], touching[life.first], replaced)
        passing += live[first:last]
        live[first:last] = [life]
        heappush(ending, (life.last, number, life))


def _begin(life: _Life) -> int:
    return life.begin


def _check_written_over(
    life: _Life,
    other: _Life,
    launch: Launch,
    touching: Mapping[str, frozenset[int]],
    replaced: set[tuple[str, str]],
) -> None:
    """A tensor may be written over another one only where that one is needed for the last time."""
    if life.first == other.last and (
        (life.tensor, other.tensor) in replaced or _waits(launch, life.tensor, other.tensor, touching)
    ):
        return
    raise InvariantError(STAGE, launch.name, life.tensor, f"it is written over {other.tensor!r}, which is needed still")


def _waits(launch: Launch, new: str, old: str, steps: Mapping[str, frozenset[int]]) -> bool:
    """Whether the steps of an ordered launch that touch one tensor wait for all that touch the one that lay there.

    Args:
        steps: the numbers of the steps that touch each tensor.
    """
    if not isinstance(launch, Ordered):
        return False
    awaited = launch.tasks.awaited
    users, makers = steps.get(old, frozenset()), steps.get(new, frozenset())
    return all(users - {n} <= awaited(n) and n not in users for n in makers) or (
        all(users <= awaited(n) | {n} for n in makers)
    )


def _touching(launch: Launch) -> dict[str, frozenset[int]]:
    """The numbers of the steps of an ordered launch that read or write each tensor."""
    found: dict[str, set[int]] = {}
    for number, step in enumerate(launch.steps if isinstance(launch, Ordered) else ()):
        for kernel in step.kernels:
            for name in (*kernel.reads, *kernel.writes):
                found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}
