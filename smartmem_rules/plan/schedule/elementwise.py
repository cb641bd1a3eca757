"""Schedules of kernels without a contraction: how elements and rows are divided among work-items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import CLASSES, Elementwise, Rows, Schedule
from smartmem_rules.plan.kernel.model import Kernel, KernelSchedule, PlanError, Stored
from smartmem_rules.plan.kernel.row_arrays import array_size, row_axes, storage_of
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.schedule.loops import ElementLoops, lanes_across_rows, writes_images
from smartmem_rules.plan.schedule.neighbours import NeighbourWindows
from smartmem_rules.plan.schedule.records import ItemSchedule, TeamSchedule, VectorSchedule
from smartmem_rules.tensor.expr import Expr, Reduce, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest, several

Choice = Mapping[str, int]
"""Tuned sizes of one kernel, by the names that its template gives them."""
SHARED_SUMS = ("float32", "float16", "bfloat16")
"""Element types of the reductions that the members of a team divide among themselves."""


def sizes_of_elements(
    schedule: Elementwise, kernel: Kernel, tensors: Mapping[str, Stored], device: Device, width: int, choice: Choice
) -> KernelSchedule:
    """The template's sizes for a kernel; what was tuned takes the place of the schedule's where it is legal.

    Args:
        width: elements of a vector where no image asks for texels.
    """
    if schedule.items:
        items = max(1, choice.get("items", schedule.items))
        together = _window_rows(schedule, kernel, tensors, device, width)
        return ItemSchedule(name=schedule.name, template=schedule.template, items=items, window_rows=together)
    places = max(1, choice.get("places", schedule.places))
    shared = VectorSchedule(name=schedule.name, template=schedule.template, group=schedule.group, places=places)
    if not isinstance(schedule, Rows):
        return shared
    return _teams(shared, schedule, kernel, tensors, device, width, choice)


def _window_rows(
    schedule: Elementwise, kernel: Kernel, tensors: Mapping[str, Stored], device: Device, width: int
) -> int:
    if schedule.window_rows == 1 or writes_images(kernel, tensors):
        return 1
    loops = ElementLoops.of(kernel, tensors, width)
    found = NeighbourWindows.of(kernel, loops, width, schedule.window_rows, device.text.window_loads)
    return 1 if found is None else found.group


def search_space(schedule: Elementwise, own: Mapping[str, int]) -> list[dict[str, int]]:
    """The choices that tuning has: the schedule's first."""
    for size, values in schedule.search.items():
        if size in own:
            return [{size: n} for n in dict.fromkeys((own[size], *values))]
    return []


def _teams(
    shared: VectorSchedule,
    schedule: Rows,
    kernel: Kernel,
    tensors: Mapping[str, Stored],
    device: Device,
    width: int,
    choice: Choice,
) -> TeamSchedule:
    """Work-items that share a row, and rows of a work-group; arrays of a row lie in local memory."""
    images = any(tensors[s.tensor].layout.memory == "image" for s in kernel.stores)
    width = TEXEL_LANES if images else width
    rows = largest(math.prod(v.extent for v in kernel.axes if several(v.extent)))
    longest = max((largest(math.prod(v.extent for v in axes)) for axes in row_axes(kernel)), default=1)
    # few rows leave work-items idle: a vector each for a member, and few teams in a group
    few = rows < device.compute.units * schedule.team_group // schedule.few_rows
    vectors = 1 if few else schedule.vectors
    team = next((s for s in schedule.team if s * width * vectors >= longest), schedule.team[-1])
    team = choice.get("team", team)
    arrays = array_bytes(kernel)
    if arrays + 4 * team > device.memory.local_memory:
        # rows that do not fit on chip lie in the private memory of single work-items
        team, arrays, most = 1, 0, private_rows(arrays, device)
    else:
        most = schedule.team_group // team
    teams = max(1, min(schedule.team_group // team, most, device.memory.local_memory // (2 * max(arrays, 1))))
    if few and team > 1:
        teams = max(1, min(teams, rows // (2 * device.compute.units)))
    # vectors of several rows would leave units idle while each work-item sums long rows
    long, idle = 0 < schedule.alone_most < longest, rows // width < device.compute.units * schedule.team_group
    whole_rows = long and idle and team > 1 and not images and _shares_sums(kernel)
    whole_rows = whole_rows and lanes_across_rows(kernel, tensors, width)
    return TeamSchedule(
        name=shared.name,
        template=shared.template,
        group=shared.group,
        places=shared.places,
        team=team,
        teams=teams,
        whole_rows=whole_rows,
    )


def _shares_sums(kernel: Kernel) -> bool:
    """Whether the members of a team can divide all reductions among themselves, as one loop each."""
    reductions = [n for body in bodies_of(kernel) for n in walk(body) if isinstance(n, Reduce)]
    closed = not any(is_symbolic(v.extent) for n in reductions for v in n.variables)
    return closed and all(n.dtype in SHARED_SUMS for n in reductions)


def element_schedules(schedules: Mapping[str, Schedule], kind: str, memory: str) -> dict[str, Elementwise]:
    """The last schedule of each class that the device admits.

    Raises:
        PlanError: the device has none for a class of kernels.
    """
    found = [s for s in schedules.values() if isinstance(s, Elementwise)]
    chosen = {s.subject: s for s in found if s.kind in (kind, "any") and s.memory in (memory, "any")}
    lacking = ", ".join(c for c in CLASSES if c not in chosen)
    if lacking:
        raise PlanError(f"no schedule for {lacking} kernels of a {kind} device with {memory} memory: add one")
    return chosen


def array_bytes(kernel: Kernel) -> int:
    """Bytes of the arrays of one row of a reduction kernel."""
    storage = storage_of(kernel.stages, kernel.stores[-1].value) if len(kernel.stores) == 1 else {}
    homes: dict[str, int] = {}
    for stage in (s for s in kernel.stages if s.axes):
        home = storage.get(stage.name, stage.name)
        element = 8 if stage.dtype in ("float64", "int64", "uint64") else 4
        homes[home] = max(homes.get(home, 0), element * array_size(stage.axes))
    return sum(homes.values())


def private_rows(arrays: int, device: Device) -> int:
    """How many work-items of a group may keep a row of so many bytes each to themselves: a power of two."""
    return 1 << (max(1, device.memory.private_bytes // max(1, arrays)).bit_length() - 1)


def in_group(schedule: KernelSchedule | None, arrays: int, threads: int, local_memory: int) -> VectorSchedule:
    """The schedule of a kernel for work-groups of so many work-items, whose rows all have to fit in local memory.

    Args:
        schedule: the one that it has.
        arrays: bytes of a row.
    """
    assert isinstance(schedule, VectorSchedule)
    if not isinstance(schedule, TeamSchedule):
        return replace(schedule, group=threads)
    team = schedule.team
    if team > 1:
        larger = (team << n for n in range(threads.bit_length()) if team << n < threads)
        fitting = (s for s in (*larger, threads) if 4 * threads + threads // s * arrays <= local_memory)
        # rows that do not fit lie in the private memory of single work-items
        team = next(fitting, 1)
    return replace(schedule, group=threads, team=team, teams=threads // team)


def bodies_of(kernel: Kernel) -> tuple[Expr, ...]:
    """What a kernel without a contraction computes."""
    return (*(s.body for s in kernel.stages), *(s.value for s in kernel.stores))


def class_of(kernel: Kernel) -> str | None:
    """The class of a kernel that contracts nothing; None for those that no schedule is for."""
    if kernel.form == "pointwise":
        reduces = any(isinstance(node, Reduce) for body in bodies_of(kernel) for node in walk(body))
        return "window" if reduces else "pointwise"
    return kernel.form if kernel.form in CLASSES else None
