"""From fused kernels with layouts to launches: sizes, what shares a launch, places in memory, grids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.fusion.program import Program
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.plan.kernel.storage import item_bytes
from smartmem_rules.plan.launch.configs import LaunchConfigs
from smartmem_rules.plan.launch.horizontal_gpu import Candidate, side_by_side_in_groups
from smartmem_rules.plan.launch.launches import copied
from smartmem_rules.plan.launch.megakernel import counters, join_launches
from smartmem_rules.plan.memory.chain_scratch import keep_rows
from smartmem_rules.plan.memory.in_place import written_in_place
from smartmem_rules.plan.memory.planning import MemoryPlan, plan_memory
from smartmem_rules.plan.memory.scan_ring import keep_steps
from smartmem_rules.plan.printer import launches_text, memory_text, schedules_text
from smartmem_rules.plan.schedule.elementwise import Choice
from smartmem_rules.plan.schedule.grid import Grids
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.stages import Stages, Unmeasured
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """Launches in the order of execution, each with its grid, over tensors with places in memory.

    Attributes:
        tensors: with the packed factors and counters that scheduling added, and what lies in scratch memory.
    """

    planning: Planning
    kernels: tuple[Kernel, ...]
    tensors: Mapping[str, Stored]
    memory: MemoryPlan

    @property
    def stored(self) -> dict[str, Stored]:
        """The tensors in device memory: those that launches read or write, and the model's inputs and outputs."""
        program = self.planning.program
        used = {t for k in self.kernels for t in (*k.reads, *k.writes)} | {*program.inputs, *program.outputs}
        return {name: stored for name, stored in self.tensors.items() if name in used}


def schedule(
    planning: Planning,
    choices: Mapping[str, Choice] | None = None,
    *,
    observed: bool = False,
    keep_launches: bool = False,
    clock: Stages | None = None,
) -> Scheduled:
    """Size the kernels, give the tensors their places, and join launches.

    Args:
        choices: tuned sizes by kernel key.
        observed: everything that is stored lies in memory after a run, also what could stay in scratch memory.
        keep_launches: launches are not joined: the tuner measures kernels one by one.
        clock: measures the stages `schedule`, `launch` and `memory`.
    """
    clock = clock or Unmeasured()
    tensors = dict(planning.tensors)
    kernels = [copied(kernel) for kernel in planning.kernels]
    with clock.stage("schedule"):
        scheduler = planning.scheduler(tensors, choices)
        for kernel in kernels:
            scheduler.schedule_launch(kernel)
    clock.show("schedule", lambda: schedules_text(kernels, scheduler))
    with clock.stage("launch"):
        kernels = _horizontal_on_gpus(kernels, planning, scheduler, tensors)
    with clock.stage("memory"):
        memory = _placed(kernels, planning, tensors, observed)
        kernels = memory.kernels
    grids = _grids(planning, tensors)
    with clock.stage("launch"):
        for kernel in kernels:
            grids.set(kernel)
        if planning.megakernel is not None and not (observed or keep_launches):
            kernels = join_launches(
                kernels, (tensors, memory.placement), planning.megakernel, planning.profile, planning.refusals
            )
            tensors |= counters(kernels)
            for kernel in kernels:
                grids.set(kernel)
    clock.show("launch", lambda: launches_text(kernels))
    clock.show("memory", lambda: memory_text(memory, tensors))
    return Scheduled(planning=planning, kernels=tuple(kernels), tensors=tensors, memory=memory)


def schedule_alone(
    planning: Planning, kernel: Kernel, key: str, choice: Choice | None
) -> tuple[Kernel, dict[str, Stored]]:
    """A kernel of the planning by itself, and all tensors that it takes.

    Args:
        key: of the kernel in `choices`.
        choice: its sizes; those of the cost model where None.
    """
    tensors = dict(planning.tensors)
    own = copied(kernel)
    planning.scheduler(tensors, {key: choice} if choice is not None else None).schedule_launch(own)
    if own.steps:
        others = [copied(other) for other in planning.kernels if other is not kernel]
        keep_rows([own, *others], tensors, planning.program.outputs)
        own.refresh_io()
        tensors |= counters([own])
    _grids(planning, tensors).set(own)
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


def _placed(kernels: list[Kernel], planning: Planning, tensors: dict[str, Stored], observed: bool) -> MemoryPlan:
    """Places for all tensors; what need not be stored lies in scratch memory."""
    program, is_cpu = planning.program, planning.profile.kind == "cpu"
    leaves = [leaf for kernel in kernels for leaf in kernel.leaves]
    if not observed:
        keep_rows(kernels, tensors, program.outputs)
    _drop_unused(tensors, leaves, program)
    if not observed and planning.in_place and is_cpu:
        keep_steps(leaves, tensors, program.outputs, planning.profile.memory.step_bytes)
    for kernel in kernels:
        kernel.refresh_io()
    tensors |= counters(kernels)
    _pack_constants(tensors, program.constants)
    pairs = _in_place(kernels, tensors, is_cpu) if planning.in_place else None
    memory = plan_memory(tensors, kernels, planning.profile.allocator, pairs)
    for kernel in memory.kernels:
        _note_in_place(kernel, memory.in_place)
        moved = sum(_bytes(tensors[t]) for t in (*kernel.reads, *kernel.writes))
        kernel.bytes_moved = moved // kernel.shares
    return memory


def _in_place(kernels: Sequence[Kernel], tensors: Mapping[str, Stored], cpu: bool) -> dict[str, tuple[str, ...]]:
    """What may be written in place; a tensor that several launches write in pieces never is."""
    writers = Counter(name for kernel in kernels for name in kernel.writes)
    return {
        new: places
        for kernel in kernels
        for new, places in written_in_place(kernel, tensors, cpu).items()
        if writers[new] == 1
    }


def _note_in_place(kernel: Kernel, in_place: Mapping[str, str]) -> None:
    """Note which tensors a launch writes into the memory of others, in each of its kernels."""
    found = {new: old for new, old in in_place.items() if new in kernel.writes}
    for one in (kernel, *kernel.steps, *kernel.leaves):
        one.in_place = found


def _horizontal_on_gpus(
    kernels: list[Kernel], planning: Planning, scheduler: Scheduler, tensors: dict[str, Stored]
) -> list[Kernel]:
    """Kernels of GPUs side by side: only when they are sized it is known how many work-groups they have."""
    rule, device = planning.horizontal, planning.profile
    if rule is None or not device.models_occupancy or planning.profile.kind == "cpu":
        return kernels
    unsized = {kernel.name: kernel for kernel in planning.kernels}
    shares = LaunchConfigs(scheduler, scheduler.costs, tensors, device, unsized, rule.rereads)
    candidates = [Candidate(kernel, shares.of(kernel)) for kernel in kernels]
    return side_by_side_in_groups(candidates, rule, device, shares.reschedule)


def _drop_unused(tensors: dict[str, Stored], kernels: list[Kernel], program: Program) -> None:
    used = {t for k in kernels for t in (*k.reads, *k.writes)} | set(program.inputs) | set(program.outputs)
    for name in [n for n in tensors if n not in used]:
        del tensors[name]


def _pack_constants(tensors: dict[str, Stored], constants: Mapping[str, np.ndarray]) -> None:
    for name, stored in tensors.items():
        if stored.role == "constant" and stored.packed is None:
            stored.packed = pack(constants[name], stored.layout, stored.storage)


def _bytes(stored: Stored) -> int:
    return largest(stored.type.elements) * item_bytes(stored.storage)
