"""Which launches have to be over before another one begins, by the places in memory that they read and write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smartmem_rules.plan.artefact import Place
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.plan.kernel.work_items import Wait
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Touched:
    """Which memory launches read and write."""

    tensors: Mapping[str, Stored]
    placement: Mapping[str, Place]

    def meet(self, earlier: Launch, later: Launch) -> bool:
        """Whether a launch needs another one to be over: one of them writes where the other reads or writes."""
        return self._overlap(earlier.writes, (*later.reads, *later.writes)) or self._overlap(
            earlier.reads, later.writes
        )

    def _overlap(self, those: Iterable[str], others: Iterable[str]) -> bool:
        mine = [self._range(name) for name in those]
        return any(a == b and x < d and c < y for a, x, y in mine for b, c, d in map(self._range, others))

    def _range(self, name: str) -> tuple[object, int, int]:
        """The piece of memory of a tensor, and its first and last byte there."""
        size = stored_bytes(self.tensors[name])
        place = self.placement.get(name)
        return (name, 0, size) if place is None else (place.slot, place.offset, place.offset + size)


def waits_behind(
    launch: Launch, earlier: Sequence[Launch], waits: Sequence[tuple[Wait, ...]], touched: Touched
) -> tuple[Wait, ...]:
    """The earlier launches that one has to wait for; not those that these have waited for themselves.

    Args:
        waits: of the earlier launches.
    """
    found: list[int] = []
    behind: set[int] = set()
    for number in range(len(earlier) - 1, -1, -1):
        if number not in behind and touched.meet(earlier[number], launch):
            found.append(number)
            behind |= awaited_by(waits, number)
    return tuple(Wait(number) for number in sorted(found))


def awaited_by(waits: Sequence[tuple[Wait, ...]], number: int) -> set[int]:
    """All launches that are over when this one begins."""
    found: set[int] = set()
    stack = [number]
    while stack:
        for wait in waits[stack.pop()]:
            if wait.step not in found:
                found.add(wait.step)
                stack.append(wait.step)
    return found
