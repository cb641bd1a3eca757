"""Kernels of GPUs that need each other in one launch, whose work-groups take tasks in order.

A launch costs the host's time of an enqueue and the time in which the device goes from one to the next. In one launch
(codegen/ordered_groups.cl) work-groups wait for counters in memory instead, which takes less. But all kernels share one
size of work-groups, and each work-group allocates as much local memory as the kernel that needs most. So a kernel may
have to take another tile, and fewer work-groups fit on a multiprocessor. `in_stretches` weighs this for each row of
neighbouring launches, before tensors have places in memory. `join_stretches` joins them when they have: which kernels a
kernel waits for follows from these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import InOrder
from smartmem_rules.plan.kernel.launch import Beside, Launch, Ordered, Single
from smartmem_rules.plan.kernel.work_items import Note, TaskGraph, Wait
from smartmem_rules.plan.launch.configs import LaunchConfigs
from smartmem_rules.plan.launch.gathering import MOST_NOTES
from smartmem_rules.plan.launch.operands import operands_of
from smartmem_rules.plan.launch.touched import Touched, waits_behind
from smartmem_rules.plan.schedule.occupancy import LaunchConfig
from smartmem_rules.plan.schedule.records import GroupSchedule
from smartmem_rules.records import dataclass

GAP_BYTES = 16
"""Bytes of local memory between the places at which the kernels of a launch begin."""


class Shape(NamedTuple):
    """Work-items of the work-groups of a launch, and how many work-groups a unit runs at once."""

    threads: int
    residents: int


@dataclass(frozen=True)
class Stretch:
    """Neighbouring launches that become one, by their names.

    Attributes:
        local_bytes: of local memory that each work-group takes at least.
    """

    names: tuple[str, ...]
    shape: Shape
    units: int
    local_bytes: int = 0


@dataclass(frozen=True)
class _Way:
    """A launch in work-groups of some shape.

    Attributes:
        time: nanoseconds, with those for which its work-groups wait and ask for tasks.
        configs: of each of its kernels.
    """

    time: float
    configs: tuple[LaunchConfig, ...]


@dataclass(frozen=True)
class _Candidate:
    """A launch, its time by itself, and its ways in launches of several."""

    launch: Launch
    alone: float
    ways: Mapping[Shape, _Way]


class _Found(NamedTuple):
    """The cheapest launches for those up to some place: their time, and where the last of them begins and its shape."""

    time: float
    begin: int
    shape: Shape | None


def in_stretches(
    launches: Sequence[Launch], configs: LaunchConfigs, rule: InOrder
) -> tuple[list[Launch], tuple[Stretch, ...]]:
    """The launches, those of kernels that shall share one sized for that and apart, and which of them share one.

    The choice is the one of the least modelled time among all ways to part the launches in rows of neighbours.
    """
    candidates = [_candidate(launch, configs, rule) for launch in launches]
    found: list[Launch] = []
    stretches: list[Stretch] = []
    for begin, end, shape in _parts(candidates, configs.device, rule):
        if shape is None:
            found += launches[begin:end]
            continue
        sized = [one for candidate in candidates[begin:end] for one in _resized(candidate, shape, configs)]
        stretches.append(_stretch(sized, candidates[begin:end], shape, configs.device))
        found += sized
    return found, tuple(stretches)


def _stretch(launches: Sequence[Launch], candidates: Sequence[_Candidate], shape: Shape, device: Device) -> Stretch:
    """The launches as one, whose work-groups share units or have one each.

    With few registers a work-group of products waits longer, while others of the unit compute. Where most products
    have no more tasks than there are work-groups with all registers, no others are there, and each takes so much local
    memory that no more fit on a unit: a compiler that sees room for another work-group takes registers to make it.
    """
    stretch = Stretch(tuple(one.name for one in launches), shape, device.group_units)
    needed = max((_registers(single) for launch in launches for single in launch.singles), default=0)
    if needed <= device.compute.registers_among(shape.threads * shape.residents):
        return stretch
    residents = max(1, device.compute.unit_registers // (needed * shape.threads))
    local = device.memory.unit_memory // (residents + 1)
    ways = [way for candidate in candidates for way in candidate.ways[shape].configs if way.choice is not None]
    tasks = statistics.median(way.groups(shape.threads) for way in ways)
    if tasks > residents * device.group_units or local > device.memory.of_arrays:
        return stretch
    return replace(stretch, shape=shape._replace(residents=residents), local_bytes=local)


def _registers(launch: Launch) -> int:
    """Registers of each work-item that the matrix unit of a kernel needs; 0: any number."""
    schedule = launch.schedule
    unit = schedule.tile.unit if isinstance(schedule, GroupSchedule) else None
    return 0 if unit is None else unit.registers


def time_of(launches: Sequence[Launch], configs: LaunchConfigs, rule: InOrder, together: bool) -> float:
    """Modelled nanoseconds of launches in sequence.

    Args:
        together: whether neighbours share launches, in the cheapest way; else each is enqueued by itself.
    """
    candidates = [_candidate(launch, configs, rule) for launch in launches]
    if not together:
        return sum(configs.device.compute.launch + one.alone for one in candidates)
    return _shortest(candidates, configs.device, rule)[-1].time


def join_stretches(
    launches: Sequence[Launch], stretches: Sequence[Stretch], touched: Touched, polls: int, noted: str
) -> list[Launch]:
    """The launches with those of each stretch joined.

    Args:
        polls: looks at a counter after which a work-group gives up.
        noted: the tensor behind whose elements launches note that they gave up.
    """
    first = {stretch.names[0]: (stretch, Note(noted, place)) for place, stretch in enumerate(stretches[:MOST_NOTES])}
    found: list[Launch] = []
    at = 0
    while at < len(launches):
        known = first.get(launches[at].name)
        size = 1 if known is None else len(known[0].names)
        steps = tuple(launches[at : at + size])
        found.append(steps[0] if known is None else _joined(steps, *known, touched, polls))
        at += size
    return found


def _joined(steps: tuple[Launch, ...], stretch: Stretch, note: Note, touched: Touched, polls: int) -> Ordered:
    assert tuple(step.name for step in steps) == stretch.names
    waits: list[tuple[Wait, ...]] = []
    for number, step in enumerate(steps):
        waits.append(waits_behind(step, steps[:number], waits, touched))
    name = steps[0].name
    return Ordered(
        name=name,
        steps=steps,
        tasks=TaskGraph(state=f"{name}@order", waits=tuple(waits), patience=polls),
        group_items=stretch.shape.threads,
        groups=stretch.shape.residents * stretch.units,
        local_bytes=stretch.local_bytes,
        note=note,
        bytes_moved=sum(step.bytes_moved for step in steps),
        in_place={new: old for step in steps for new, old in step.in_place.items()},
    )


# --- the choice ---


def _parts(candidates: Sequence[_Candidate], device: Device, rule: InOrder) -> list[tuple[int, int, Shape | None]]:
    """Where each launch begins and ends, and its shape if it is one of several."""
    best = _shortest(candidates, device, rule)
    found: list[tuple[int, int, Shape | None]] = []
    end = len(candidates)
    while end:
        found.append((best[end].begin, end, best[end].shape))
        end = best[end].begin
    return found[::-1]


def _shortest(candidates: Sequence[_Candidate], device: Device, rule: InOrder) -> list[_Found]:
    """The cheapest launches for those up to each place: the shortest paths over the places."""
    shapes = sorted({shape for candidate in candidates for shape in candidate.ways})
    best = [_Found(0.0, 0, None), *[_Found(math.inf, 0, None)] * len(candidates)]
    for begin, candidate in enumerate(candidates):
        alone = _Found(best[begin].time + device.compute.launch + candidate.alone, begin, None)
        best[begin + 1] = min(best[begin + 1], alone, key=lambda one: one.time)
        for shape in shapes:
            time, kernels, operands = best[begin].time + device.compute.launch, 0, set[str]()
            for end in range(begin, len(candidates)):
                way = candidates[end].ways.get(shape)
                kernels += len(candidates[end].launch.singles)
                operands |= operands_of(candidates[end].launch)
                if way is None or kernels > rule.kernels or len(operands) > device.compute.parameters:
                    break
                time += way.time
                if end > begin and time < best[end + 1].time:
                    best[end + 1] = _Found(time, begin, shape)
    return best


def _candidate(launch: Launch, configs: LaunchConfigs, rule: InOrder) -> _Candidate:
    members = launch.steps if isinstance(launch, Beside) else (launch,)
    device = configs.device
    images = any(configs.tensors[name].layout.memory == "image" for name in (*launch.reads, *launch.writes))
    whole = [configs.in_order(member, device.compute.resident) for member in members]
    # without its own kernel's time a launch costs the same in each way to part them
    alone = max((_own(member, ways, device) for member, ways in zip(members, whole, strict=True)), default=0.0)
    if images or not all(isinstance(member, Single) for member in members) or not all(whole):
        return _Candidate(launch, alone, {})
    sizes = {way.threads for ways in whole for way in ways} - {0} or {rule.unit_items // 2}
    ways: dict[Shape, _Way] = {}
    for threads in sizes:
        for residents in range(1, max(1, rule.unit_items // threads) + 1):
            way = _way(members, Shape(threads, residents), configs, rule)
            if way is not None:
                ways[Shape(threads, residents)] = way
    return _Candidate(launch, alone, ways)


def _own(launch: Launch, ways: Sequence[LaunchConfig], device: Device) -> float:
    """Nanoseconds of a kernel in its own launch: with the tile that it has."""
    if not ways:
        return 0.0
    schedule = launch.schedule
    sizes = {} if schedule is None else schedule.sizes()
    own = next((way for way in ways if way.choice is not None and dict(way.choice) == sizes), ways[0])
    return own.time if own.choice is not None else max(own.time, device.compute.wave_us * 1000)


def _way(members: Sequence[Launch], shape: Shape, configs: LaunchConfigs, rule: InOrder) -> _Way | None:
    device = configs.device
    compute, memory = device.compute, device.memory
    # each resident work-group takes some local memory for itself
    of_group = min(memory.of_arrays, memory.unit_memory // shape.residents - rule.spare_local_bytes)
    room = of_group - rule.spare_local_bytes - GAP_BYTES * rule.kernels
    slots = device.group_units * shape.residents
    time, chosen = compute.order_us * 1000, []
    for member in members:
        fitting = [
            (_time(way, shape, slots, device), place, way)
            for place, way in enumerate(configs.in_order(member, shape.residents))
            if way.threads in (0, shape.threads) and way.local <= room and way.items
        ]
        if not fitting:
            return None
        own, _, way = min(fitting)
        time += own
        chosen.append(way)
    return _Way(time, tuple(chosen))


def _time(way: LaunchConfig, shape: Shape, slots: int, device: Device) -> float:
    """Nanoseconds of a kernel's tasks in a launch of others."""
    waves = math.ceil(way.groups(shape.threads) / slots)
    asking = (waves - 1) * device.compute.take_us * 1000
    wave = device.compute.wave_us * 1000
    own = way.time + wave if way.choice is not None else max(way.time, waves * wave)
    return (way.order_factor or device.compute.order_factor) * own + asking


def _resized(candidate: _Candidate, shape: Shape, configs: LaunchConfigs) -> list[Launch]:
    launch = candidate.launch
    members = launch.steps if isinstance(launch, Beside) else (launch,)
    chosen = candidate.ways[shape].configs
    return [configs.reschedule(member, config, shape.threads) for member, config in zip(members, chosen, strict=True)]
