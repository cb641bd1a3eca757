"""From fused kernels with layouts to launches: sizes, what shares a launch, places in memory, grids."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.fuse import Horizontal, InOrder
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.fusion.equations.program import Program
from smartmem_rules.plan.kernel.launch import Launch, Wave
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.plan.kernel.storage import item_bytes
from smartmem_rules.plan.launch.configs import LaunchConfigs
from smartmem_rules.plan.launch.divided_sums import DividedSums
from smartmem_rules.plan.launch.horizontal_gpu import Candidate, side_by_side_in_groups
from smartmem_rules.plan.launch.in_order import Stretch, in_stretches, join_stretches, time_of
from smartmem_rules.plan.launch.megakernel import counters, join_launches
from smartmem_rules.plan.launch.touched import Touched
from smartmem_rules.plan.memory.chain_scratch import keep_rows
from smartmem_rules.plan.memory.in_place import written_in_place
from smartmem_rules.plan.memory.planning import MemoryPlan, plan_memory
from smartmem_rules.plan.memory.scan_ring import keep_steps
from smartmem_rules.plan.printer import launches_text, memory_text, schedules_text
from smartmem_rules.plan.schedule.elementwise import Choice
from smartmem_rules.plan.schedule.grid import Grids
from smartmem_rules.plan.schedule.last_uses import LastUses
from smartmem_rules.plan.schedule.modelled import ModelledTimes
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.records import dataclass
from smartmem_rules.stages import Stages, Unmeasured
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """Launches in the order of execution, each with its grid, over tensors with places in memory.

    Attributes:
        tensors: with the packed factors and counters that scheduling added, and what lies in scratch memory.
        modelled: what the cost model says of the launches.
    """

    planning: Planning
    launches: tuple[Launch, ...]
    tensors: Mapping[str, Stored]
    memory: MemoryPlan
    modelled: ModelledTimes

    @property
    def stored(self) -> dict[str, Stored]:
        """The tensors in device memory: those that launches read or write, and the model's inputs and outputs."""
        program = self.planning.program
        used = {t for k in self.launches for t in (*k.reads, *k.writes)} | {*program.inputs, *program.outputs}
        return {name: stored for name, stored in self.tensors.items() if name in used}


def schedule(
    planning: Planning,
    choices: Mapping[str, Choice] | None = None,
    *,
    observed: bool = False,
    keep_launches: bool = False,
    owned: bool = False,
    clock: Stages | None = None,
) -> Scheduled:
    """Size the kernels, give the tensors their places, and join launches.

    Args:
        choices: tuned sizes by kernel key.
        observed: everything that is stored lies in memory after a run, also what could stay in scratch memory.
        keep_launches: launches are not joined: the tuner measures launches one by one.
        owned: nobody else needs the planning: its constants are dropped when their packed copies are there.
        clock: measures the stages `schedule`, `launch` and `memory`.
    """
    clock = clock or Unmeasured()
    if not (observed or keep_launches):
        planning = _with_divided_sums(planning)
    tensors = dict(planning.tensors)
    with clock.stage("schedule"):
        scheduler = planning.scheduler(tensors, choices)
        scheduled = _scheduled(planning, scheduler, owned and not _is_regrouped(planning))
    clock.show("schedule", lambda: schedules_text(scheduled, scheduler))
    with clock.stage("launch"):
        joined = _horizontal_on_gpus(scheduled, planning, scheduler, tensors)
        apart = observed or keep_launches
        joined, stretches = (joined, ()) if apart else _in_order(joined, planning, scheduler, tensors)
    with clock.stage("memory"):
        memory = _placed(joined, planning, tensors, observed, [stretch.names for stretch in stretches])
    grids = _grids(planning, tensors)
    with clock.stage("launch"):
        launches = [grids.sized(launch) for launch in memory.launches]
        places = (tensors, memory.placement)
        if planning.in_order is not None and stretches:
            polls, (noted, *_) = planning.in_order.polls(planning.profile), _noted(planning, tensors)
            launches = join_stretches(launches, stretches, Touched(*places), polls, noted)
            tensors |= counters(launches)
            launches = [grids.sized(launch) for launch in launches]
        if planning.megakernel is not None and not apart:
            ordered = join_launches(launches, places, planning.megakernel, planning.profile, planning.refusals)
            tensors |= counters(ordered)
            launches = [grids.sized(launch) for launch in ordered]
    clock.show("launch", lambda: launches_text(launches))
    clock.show("memory", lambda: memory_text(memory, tensors))
    modelled = ModelledTimes.of(scheduler.costs, launches)
    return Scheduled(planning=planning, launches=tuple(launches), tensors=tensors, memory=memory, modelled=modelled)


def _scheduled(planning: Planning, scheduler: Scheduler, owned: bool) -> list[Launch]:
    """The launches with their sizes."""
    program = planning.program
    tables = (program.constants, program.packable)
    uses = LastUses(planning.launches, tables, program.outputs) if owned else None
    found: list[Launch] = []
    with scheduler.packer.beside():
        for place, launch in enumerate(planning.launches):
            found.append(scheduler.schedule_launch(launch))
            if uses is not None:
                uses.after(place, launch, found[-1])
    return found


def schedule_alone(
    planning: Planning, launch: Launch, key: str, choice: Choice | None
) -> tuple[Launch, dict[str, Stored]]:
    """A launch of the planning by itself, and all tensors that it takes.

    Args:
        key: of the launch in `choices`.
        choice: its sizes; those of the cost model where None.
    """
    tensors = dict(planning.tensors)
    scheduler = planning.scheduler(tensors, {key: choice} if choice is not None else None)
    own = scheduler.schedule_launch(launch)
    if own.steps:
        others = [other for other in planning.launches if other is not launch]
        own, *_ = keep_rows([own, *others], tensors, planning.program.outputs)
        tensors |= counters([own])
    own = _grids(planning, tensors).sized(own)
    used = {t: tensors[t] for t in (*own.reads, *own.writes)}
    _pack_constants(used, planning.program.constants)
    return own, {**tensors, **used}


def _grids(planning: Planning, tensors: Mapping[str, Stored]) -> Grids:
    rule = planning.megakernel
    return Grids(
        device=planning.profile,
        tensors=tensors,
        width=planning.width,
        ordered_groups=1 if rule is None else rule.groups,
    )


def _placed(
    launches: list[Launch],
    planning: Planning,
    tensors: dict[str, Stored],
    observed: bool,
    neighbours: Sequence[tuple[str, ...]],
) -> MemoryPlan:
    """Places for all tensors; what need not be stored lies in scratch memory.

    Args:
        neighbours: names of launches that will share one.
    """
    program, is_cpu = planning.program, planning.profile.kind == "cpu"
    if not observed:
        launches = keep_rows(launches, tensors, program.outputs)
    _drop_unused(tensors, launches, program)
    if not observed and planning.in_place and is_cpu:
        launches = keep_steps(launches, tensors, program.outputs, planning.profile.memory.step_bytes)
    tensors |= counters(launches)
    _pack_constants(tensors, program.constants)
    pairs = _in_place(launches, tensors, is_cpu) if planning.in_place else None
    memory = plan_memory(tensors, launches, planning.profile.allocator, pairs, neighbours)
    return replace(memory, launches=[_in_memory(launch, memory.in_place, tensors) for launch in memory.launches])


def _in_place(launches: Sequence[Launch], tensors: Mapping[str, Stored], cpu: bool) -> dict[str, tuple[str, ...]]:
    """What may be written in place; a tensor that several launches write in pieces never is."""
    writers = Counter(name for launch in launches for name in launch.writes)
    return {
        new: places
        for launch in launches
        for new, places in written_in_place(launch, tensors, cpu).items()
        if writers[new] == 1
    }


def _in_memory(launch: Launch, in_place: Mapping[str, str], tensors: Mapping[str, Stored]) -> Launch:
    """The launch with what it writes into the memory of other tensors, and the bytes that it moves."""
    found = {new: old for new, old in in_place.items() if new in launch.writes}
    seldom = {name for kernel in launch.kernels for name in _seldom_read(kernel)}
    seldom -= {name for kernel in launch.kernels for name in kernel.reads if name not in _seldom_read(kernel)}
    moved = sum(_bytes(tensors[t]) for t in (*launch.reads, *launch.writes) if t not in seldom)
    shares = launch.shares if isinstance(launch, Wave) else 1
    return replace(launch.with_in_place(found), bytes_moved=moved // shares)


def _seldom_read(kernel: Kernel) -> tuple[str, ...]:
    return () if kernel.schedule is None else kernel.schedule.seldom_read


def _horizontal_on_gpus(
    launches: list[Launch], planning: Planning, scheduler: Scheduler, tensors: dict[str, Stored]
) -> list[Launch]:
    """Kernels of GPUs side by side: only when they are sized it is known how many work-groups they have."""
    rule, device = planning.horizontal, planning.profile
    if rule is None or not _is_regrouped(planning):
        return launches
    configs = _configs(rule, planning, scheduler, tensors)
    candidates = [Candidate(launch, configs.of(launch)) for launch in launches]
    return side_by_side_in_groups(candidates, rule, device, configs.reschedule)


def _in_order(
    launches: list[Launch], planning: Planning, scheduler: Scheduler, tensors: dict[str, Stored]
) -> tuple[list[Launch], tuple[Stretch, ...]]:
    """Kernels of GPUs that need each other in one launch: sized for that before tensors have places."""
    rule, limits = planning.in_order, planning.horizontal
    if rule is None or limits is None or not _is_regrouped(planning) or not _noted(planning, tensors):
        return launches, ()
    return in_stretches(launches, _configs(limits, planning, scheduler, tensors), rule)


def in_order_pays(planning: Planning, apart: Planning) -> bool:
    """Whether a plan whose kernels may share launches in order is the faster one by the model.

    Args:
        apart: the same model's, with kernels that suit launches of their own.
    """
    return _modelled(planning, planning.in_order, together=True) < _modelled(apart, planning.in_order, together=False)


def _modelled(planning: Planning, rule: InOrder | None, together: bool) -> float:
    """Nanoseconds of the launches; infinitely many where they cannot be ordered."""
    limits = planning.horizontal
    if rule is None or limits is None or not _is_regrouped(planning) or not _noted(planning, planning.tensors):
        return math.inf
    if together:
        planning = _with_divided_sums(planning)
    tensors = dict(planning.tensors)
    scheduler = planning.scheduler(tensors, None)
    launches = _horizontal_on_gpus(_scheduled(planning, scheduler, False), planning, scheduler, tensors)
    return time_of(launches, _configs(limits, planning, scheduler, tensors), rule, together)


def _with_divided_sums(planning: Planning) -> Planning:
    """The planning with products whose partial sums the next kernel adds up, where kernels may share launches."""
    rule = planning.in_order
    if rule is None or not rule.divided or not _is_regrouped(planning) or not _noted(planning, planning.tensors):
        return planning
    templates = planning.scheduler(dict(planning.tensors), None).templates
    launches, sums = DividedSums(rule, templates, planning.program.outputs).divided(planning.launches)
    return replace(planning, launches=tuple(launches), tensors={**planning.tensors, **sums})


def _noted(planning: Planning, tensors: Mapping[str, Stored]) -> list[str]:
    """Outputs behind whose elements a launch may note that it gave up: the host reads them anyway."""
    outputs = (tensors[name] for name in planning.program.outputs)
    sized = (t for t in outputs if not any(is_symbolic(extent) for extent in t.type.shape) and t.type.elements)
    return [t.name for t in sized if t.layout.memory == "buffer" and t.role == "output"]


def _configs(limits: Horizontal, planning: Planning, scheduler: Scheduler, tensors: dict[str, Stored]) -> LaunchConfigs:
    return LaunchConfigs(
        scheduler=scheduler,
        costs=scheduler.costs,
        tensors=tensors,
        device=planning.profile,
        unsized={launch.name: launch for launch in planning.launches},
        limits=limits,
    )


def _is_regrouped(planning: Planning) -> bool:
    """Whether sized kernels are sized once more for launches that they share."""
    device = planning.profile
    return planning.horizontal is not None and device.models_occupancy and device.kind != "cpu"


def _drop_unused(tensors: dict[str, Stored], launches: Sequence[Launch], program: Program) -> None:
    used = {t for one in launches for kernel in one.kernels for t in (*kernel.reads, *kernel.writes)}
    used |= {*program.inputs, *program.outputs}
    for name in [n for n in tensors if n not in used]:
        del tensors[name]


def _pack_constants(tensors: dict[str, Stored], constants: Mapping[str, np.ndarray]) -> None:
    for name, stored in tensors.items():
        if stored.role == "constant" and stored.packed is None:
            tensors[name] = replace(stored, packed=pack(constants[name], stored.layout, stored.storage))


def _bytes(stored: Stored) -> int:
    return largest(stored.type.elements) * item_bytes(stored.storage)
