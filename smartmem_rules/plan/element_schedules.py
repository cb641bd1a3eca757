"""How kernels that contract nothing share out their elements and rows: the schedules of their classes, and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.model import Kernel, PlanError, Stored
from smartmem_rules.plan.row_arrays import array_size, row_axes, storage_of
from smartmem_rules.tensor.expr import Reduce, walk
from smartmem_rules.tensor.ranges import largest, several

CLASSES = ("pointwise", "window", "reduction")
"""Kernels that a `schedule NAME for CLASS` block may be for, besides contractions."""
Choice = Mapping[str, int]
"""Tuned sizes of one kernel, by the names that its template gives them."""
LANES = 4


@dataclass(frozen=True)
class Items:
    """What the sizes depend on besides the kernel.

    Attributes:
        units: cores or multiprocessors.
        local_memory: bytes of a work-group.
        width: elements of a vector where no image asks for texels.
    """

    units: int
    local_memory: int
    width: int


@dataclass(frozen=True)
class ElementSchedule:
    """A `schedule NAME for pointwise`, `for window` or `for reduction` block.

    Attributes:
        items: work-items among which rows of the output are divided; 0 where work-items take vectors of it.
        group: work-items of a work-group.
        places: vectors that a work-item computes.
        team: numbers of work-items that may share a row.
        team_group: work-items of a work-group of teams.
        vectors: of a row for each member of a team, where there are rows enough to keep the device busy.
        few_rows: where the device's work-groups have `1 / few_rows` rows for each work-item, rows are few.
        spaces: what tuning tries.
    """

    name: str
    subject: str
    kind: str
    memory: str
    items: int
    group: int
    places: int
    team: tuple[int, ...]
    team_group: int
    vectors: int
    few_rows: int
    spaces: Mapping[str, tuple[int, ...]]

    @staticmethod
    def of(block: Block) -> ElementSchedule:
        entries = {e.key: e.values for e in block.entries}
        numbers = {key: int(values[0]) for key, values in entries.items() if values and isinstance(values[0], int)}
        return ElementSchedule(
            block.name,
            str(block.subject),
            str(entries["kind"][0]),
            str(entries["memory"][0]),
            numbers.get("items", 0),
            numbers.get("group", 64),
            numbers.get("places", 1),
            tuple(int(n) for n in entries.get("team", (1,))),
            numbers.get("team_group", 64),
            numbers.get("vectors", 1),
            numbers.get("few_rows", 8),
            {str(e.values[0]): tuple(int(v) for v in e.values[1:]) for e in block.entries if e.key == "search"},
        )

    def sizes(self, kernel: Kernel, tensors: Mapping[str, Stored], device: Items, choice: Choice) -> dict[str, Any]:
        """The template's sizes for a kernel; what was tuned takes the place of the schedule's where it is legal."""
        if self.items:
            return {"name": self.name, "items": max(1, choice.get("items", self.items))}
        shared = {"name": self.name, "group": self.group, "places": max(1, choice.get("places", self.places))}
        if self.subject != "reduction":
            return shared
        return {**shared, **self._teams(kernel, tensors, device, choice)}

    def space(self, kernel: Kernel, own: Mapping[str, Any]) -> list[dict[str, int]]:
        """The choices that tuning has: the schedule's first."""
        for size, values in self.spaces.items():
            if size in own:
                return [{size: n} for n in dict.fromkeys((own[size], *values))]
        return []

    def _teams(self, kernel: Kernel, tensors: Mapping[str, Stored], device: Items, choice: Choice) -> dict[str, int]:
        """Work-items that share a row, and rows of a work-group; arrays of a row lie in local memory."""
        images = any(tensors[s.tensor].layout.memory == "image" for s in kernel.stores)
        width = LANES if images else device.width
        rows = largest(math.prod(v.extent for v in kernel.axes if several(v.extent)))
        longest = max((largest(math.prod(v.extent for v in axes)) for axes in row_axes(kernel)), default=1)
        # few rows leave work-items idle: a vector each for a member, and few teams in a group
        few = rows < device.units * self.team_group // self.few_rows
        vectors = 1 if few else self.vectors
        team = next((s for s in self.team if s * width * vectors >= longest), self.team[-1])
        team = choice.get("team", team)
        arrays = array_bytes(kernel)
        if arrays + 4 * team > device.local_memory:
            # rows that do not fit on chip lie in the private memory of single work-items
            team, arrays = 1, 0
        teams = max(1, min(self.team_group // team, device.local_memory // (2 * max(arrays, 1))))
        if few and team > 1:
            teams = max(1, min(teams, rows // (2 * device.units)))
        return {"team": team, "teams": teams}


def element_schedules(schedules: Mapping[str, Block], kind: str, memory: str) -> dict[str, ElementSchedule]:
    """The last schedule of each class that the device admits.

    Raises:
        PlanError: the device has none for a class of kernels.
    """
    found = [ElementSchedule.of(b) for b in schedules.values() if b.subject in CLASSES]
    chosen = {s.subject: s for s in found if s.kind in (kind, "any") and s.memory in (memory, "any")}
    lacking = ", ".join(c for c in CLASSES if c not in chosen)
    if lacking:
        raise PlanError(f"no schedule for {lacking} kernels of a {kind} device with {memory} memory: add one")
    return chosen


def array_bytes(kernel: Kernel) -> int:
    """Bytes of the arrays of one row of a reduction kernel."""
    storage = storage_of(kernel.stages, kernel.stores[-1].value) if len(kernel.stores) == 1 else {}
    homes = {storage.get(s.name, s.name): array_size(s.axes) for s in kernel.stages if s.axes}
    return 4 * sum(homes.values())


def in_group(schedule: Mapping[str, Any], arrays: int, threads: int, local_memory: int) -> dict[str, Any]:
    """The sizes of a kernel for work-groups of so many work-items, whose rows all have to fit in local memory.

    Args:
        schedule: the sizes that it has.
        arrays: bytes of a row.
    """
    sizes = {**schedule, "group": threads}
    team = schedule.get("team", 1)
    if team > 1:
        larger = (team << n for n in range(threads.bit_length()) if team << n < threads)
        fitting = (s for s in (*larger, threads) if 4 * threads + threads // s * arrays <= local_memory)
        # rows that do not fit lie in the private memory of single work-items
        team = next(fitting, 1)
    return sizes if "team" not in schedule else {**sizes, "team": team, "teams": threads // team}


def class_of(kernel: Kernel) -> str | None:
    """The class of a kernel that contracts nothing; None for those that no schedule is for."""
    if kernel.form == "pointwise":
        bodies = (*(s.body for s in kernel.stages), *(s.value for s in kernel.stores))
        reduces = any(isinstance(node, Reduce) for body in bodies for node in walk(body))
        return "window" if reduces else "pointwise"
    return kernel.form if kernel.form in CLASSES else None
