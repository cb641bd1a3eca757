"""From an extracted graph to a plan: fuse, choose layouts, schedule, place in memory, emit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from smartmem_rules.emit.emit import emit
from smartmem_rules.emit.kernel import Target
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.rulebase import RuleBase
from smartmem_rules.plan.alternatives import Limits
from smartmem_rules.plan.beside_groups import Candidate, side_by_side_in_groups
from smartmem_rules.plan.element_schedules import Choice, ElementSchedule, element_schedules
from smartmem_rules.plan.in_place import written_in_place
from smartmem_rules.plan.joint import JointChoice, choose_kernels
from smartmem_rules.plan.kept_rows import keep_rows
from smartmem_rules.plan.kept_steps import keep_steps
from smartmem_rules.plan.kernel_times import KernelTimes
from smartmem_rules.plan.launches import Fusion, copied, launches, same, settle
from smartmem_rules.plan.layout_rules import ImageLimits, LayoutCosts
from smartmem_rules.plan.layout_space import LayoutSpace, Where
from smartmem_rules.plan.layout_uses import RegisterBlock
from smartmem_rules.plan.layouts import LayoutChoice, choose_layouts, lay_out_row_major, solve_layouts
from smartmem_rules.plan.memory import item_bytes, plan_memory
from smartmem_rules.plan.model import Kernel, Plan, PlanError, Source, Stored, row_major
from smartmem_rules.plan.ordered import counters, join_launches
from smartmem_rules.plan.packing import holds, pack
from smartmem_rules.plan.policy import FusionRule, Policy, policy_of
from smartmem_rules.plan.profile import Profile
from smartmem_rules.plan.program import Program, flatten
from smartmem_rules.plan.schedule import Scheduler, candidates
from smartmem_rules.plan.shares import Shares
from smartmem_rules.plan.sizing import ContractionSchedule
from smartmem_rules.plan.texture_tiles import TextureTiles
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.primitives import device_dtype, storage_dtype
from smartmem_rules.tensor.ranges import largest

LAYOUT = "reduction_contiguous"


@dataclass(frozen=True)
class Planning:
    """Fused kernels over tensors with layouts, before the kernels are sized.

    Attributes:
        tensors: without the packed factors that scheduling adds.
        layouts: how well the layouts were chosen, None where tensors stay row-major.
        joint: how well kernels were chosen together with them, None where the fusion rules alone made them.
        ordered: which launches become one whose work-items wait for each other.
    """

    graph: Graph
    profile: Profile
    level: str
    dtype: str
    program: Program
    kernels: tuple[Kernel, ...]
    tensors: Mapping[str, Stored]
    schedules: tuple[ContractionSchedule, ...]
    elementwise: Mapping[str, ElementSchedule]
    limits: ImageLimits | None
    target: Target
    layouts: LayoutChoice | None
    joint: JointChoice | None
    in_place: bool
    wide: Collection[str] = ()
    beside: FusionRule | None = None
    ordered: FusionRule | None = None

    def scheduler(self, tensors: dict[str, Stored], choices: Mapping[str, Choice] | None) -> Scheduler:
        """Sizes kernels; packed factors go into `tensors`."""
        profile = self.profile
        return Scheduler(
            self.schedules, self.program.constants, tensors, self.dtype, self.limits,
            profile.local_memory, profile.machine.units, choices, self.elementwise, profile.roofs, self.wide,
            self.target.width,
        )  # fmt: skip


def prepare(
    graph: Graph,
    base: RuleBase,
    profile: Profile,
    level: str,
    dtype: str = "float32",
    memory: str = "auto",
    layout: str = "exact",
    wide: Collection[str] = (),
) -> Planning:
    """Fuse a graph's equations to kernels and lay out their tensors.

    Args:
        level: a level of levels.smr.
        dtype: how floating-point tensors are stored (float32, float16); sums are always float32.
        memory: image or buffer for all tensors; auto leaves it to the level whether the device profile decides,
            preferred does not.  A profile that prefers images leaves the choice between both to the costs of layouts.
        layout: exact chooses for all tensors together, and kernels with them where the level says so; local edge by
            edge, for the kernels of the fusion rules.
        wide: tensors that stay float32, because their values exceed what halves hold.

    Raises:
        PlanError: the level is unknown, or no kernel or schedule exists for something.
    """
    if level not in base.levels:
        raise PlanError(f"there is no level {level}; the rule files define {', '.join(base.levels)}")
    policy = policy_of(base.levels[level], base.tables, base.fuses)
    memory, kinds = _memory(memory, policy, profile)
    schedules = candidates(base.schedules, profile.kind, memory, policy.tuned, bool(graph.dimensions))
    # transformed weights of few bits would lose too much
    schedules = tuple(s for s in schedules if s.transform is None or dtype == "float32")
    policy = policy.within({s.template for s in schedules})
    program = flatten(graph, policy.reads_through_views)
    exact = layout == "exact"
    fusion = Fusion(program, policy, schedules, profile.local_memory)
    own = fusion.kernels()
    # weights that a recurrence reads at every step: the elements that it sums up lie side by side as they come
    fixed = [*program.outputs, *(t for k in own if k.form == "scan" for t in (*k.writes, *k.reads))]
    where = Where(
        LayoutCosts.of(base.layouts[LAYOUT]),
        profile.memory,
        kinds,
        fixed,
        program.constants,
        _register_block(schedules, profile.memory.wave if "image" in kinds else 0),
        (),
    )
    joint = None
    if policy.chooses_kernels and exact:
        pool = fusion.pool(Limits(where.costs.configurations, where.costs.further_kernels))
        stored = _stored(pool.kernels, program, dtype, wide)
        times = _times(stored, schedules, profile, dtype, wide)
        # without a choice of layouts kernels are compared as if all lay in the order of their axes
        there = where if policy.chooses_layouts else replace(where, fixed=stored.keys())
        joint = choose_kernels(pool, stored, there, {n: times.of(k) for n, k in enumerate(pool.kernels)})
        kernels, joint = settle(joint, own, fusion, profile.kind, profile.machine, times)
        own = list(joint.kernels)
    else:
        kernels = launches(own, fusion, profile.kind, profile.machine)
    layouts, answer = None, None
    if joint is not None and policy.chooses_layouts and same(kernels, own):
        # the layouts were chosen for these very kernels
        answer = joint.answer
        tensors = dict(answer.problem.space.tensors)
    else:
        leaves = [leaf for kernel in kernels for leaf in kernel.leaves]
        tensors = _stored(leaves, program, dtype, wide)
        where = replace(where, launched={leaf.name for k in kernels for leaf in k.leaves if k.steps})
        space = LayoutSpace(leaves, tensors, where)
        if policy.chooses_layouts:
            answer = solve_layouts(space, exact)
    if answer is not None:
        layouts = choose_layouts(answer, tensors, program.constants, exact)
        kernels = _with_copiers(kernels, layouts)
    else:
        lay_out_row_major(space, tensors, program.constants)
    limits = profile.memory.limits if memory == "image" else None
    width = 4 if memory == "image" else profile.vector_width
    target = Target(
        profile.kind,
        width,
        profile.local_memory,
        profile.machine.units,
        profile.matrix,
        profile.shuffle,
        dimensions=graph.dimensions,
    )
    shares = element_schedules(base.schedules, profile.kind, memory)
    return Planning(
        graph, profile, level, dtype, program, tuple(kernels), tensors, schedules, shares, limits, target, layouts,
        joint, policy.writes_in_place, frozenset(wide), policy.rule("any", "any"),
        policy.rule("launch", "launch") if profile.machine.ordered else None,
    )  # fmt: skip


def _memory(memory: str, policy: Policy, profile: Profile) -> tuple[str, tuple[str, ...]]:
    """What schedules are for, image or buffer, and where single tensors may lie."""
    if memory == "auto":
        memory = "preferred" if policy.prefers_device_memory else "buffer"
    if memory != "preferred":
        return memory, (memory,)
    # where buffers are no slower than textures, nothing speaks for an image
    both = profile.prefers == "image" and policy.chooses_layouts
    return profile.prefers, ("image", "buffer") if both else (profile.prefers,)


def _register_block(schedules: tuple[ContractionSchedule, ...], wave: int) -> RegisterBlock | None:
    """The block of sums for which a contraction on textures reads its operands from memory, by its first schedule."""
    first = schedules[0]
    return RegisterBlock(first.rows[0], first.columns[0], wave) if first.template == "tile" else None


def _with_copiers(kernels: list[Kernel], layouts: LayoutChoice) -> list[Kernel]:
    """The kernels with those that copy a tensor to its second layout, each before the first that reads it there."""
    before: dict[str, list[Kernel]] = {}
    for kernel, reader in layouts.copiers:
        before.setdefault(reader, []).append(kernel)
    found = []
    for kernel in kernels:
        for leaf in kernel.leaves:
            found += before.get(leaf.name, [])
        found.append(kernel)
    return found


def finish(
    planning: Planning, choices: Mapping[str, Choice] | None = None, observed: bool = False, apart: bool = False
) -> Plan:
    """Size the kernels and emit them.

    Args:
        choices: tuned sizes by kernel key.
        observed: everything that is stored lies in memory after a run, also what could stay in scratch memory.
        apart: each kernel of the planning stays a launch.
    """
    tensors = dict(planning.tensors)
    kernels = [copied(kernel) for kernel in planning.kernels]
    program, graph = planning.program, planning.graph
    scheduler = planning.scheduler(tensors, choices)
    for kernel in kernels:
        scheduler.schedule_launch(kernel)
    kernels = _beside_in_groups(kernels, planning, scheduler, tensors)
    leaves = [leaf for kernel in kernels for leaf in kernel.leaves]
    if not observed:
        keep_rows(kernels, tensors, program.outputs)
    _drop_unused(tensors, leaves, program)
    if not observed and planning.in_place and planning.target.is_cpu:
        keep_steps(leaves, tensors, program.outputs)
    for kernel in kernels:
        kernel.note_borders()
    tensors |= counters(kernels)
    _pack_constants(tensors, program.constants)
    pairs = None
    if planning.in_place:
        pairs = _in_place(kernels, tensors, planning.target.is_cpu)
    memory = plan_memory(tensors, kernels, pairs, planning.profile.room)
    kernels = memory.kernels
    for kernel in kernels:
        _note_in_place(kernel, memory.in_place)
        moved = sum(_bytes(tensors[t]) for t in (*kernel.reads, *kernel.writes))
        kernel.bytes_moved = moved // kernel.schedule.get("shares", 1)
    sources = [_emitted(kernel, planning.target, tensors) for kernel in kernels]
    if planning.ordered is not None and not (observed or apart):
        made = {id(kernel): source for kernel, source in zip(kernels, sources, strict=True)}
        kernels = join_launches(
            kernels, sources, (tensors, memory.placement), planning.ordered, planning.profile.machine
        )
        tensors |= counters(kernels)
        sources = [made.get(id(kernel)) or _emitted(kernel, planning.target, tensors) for kernel in kernels]
    _drop_unused(tensors, kernels, program)
    plan = Plan(
        graph.name, planning.profile.name, planning.level, planning.dtype, list(graph.inputs), list(graph.outputs),
        tensors, kernels, sources, memory.slots, memory.placement, graph.sizes, graph.dimensions,
    )  # fmt: skip
    layouts = planning.layouts
    plan.statistics["layouts"] = {"status": "skipped", "gap": 0.0} if layouts is None else layouts.data()
    if planning.joint is not None:
        plan.statistics["layouts"]["joint"] = planning.joint.data()
    plan.statistics["tensor_layouts"] = {} if layouts is None else dict(layouts.described)
    plan.statistics["intermediate_bytes"] = memory.memory.data()
    return plan


def _in_place(kernels: Sequence[Kernel], tensors: Mapping[str, Stored], cpu: bool) -> dict[str, tuple[str, ...]]:
    """What may be written in place; a tensor that several launches write in pieces never is."""
    writers = Counter(name for kernel in kernels for name in kernel.writes)
    return {
        new: places
        for kernel in kernels
        for new, places in written_in_place(kernel, tensors, cpu).items()
        if writers[new] == 1
    }


def _emitted(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    with _for_ranges(kernel):
        return emit(kernel, target, tensors)


@contextmanager
def _for_ranges(kernel: Kernel) -> Iterator[None]:
    """Name the operators whose kernel needs an open extent as a number."""
    try:
        yield
    except SymbolicExtentError as error:
        raise PlanError(f"the kernel of {', '.join(kernel.origin)} cannot take a range of extents: {error}") from error


def _note_in_place(kernel: Kernel, in_place: Mapping[str, str]) -> None:
    """Note which tensors a launch writes into the memory of others, in each of its kernels."""
    found = {new: old for new, old in in_place.items() if new in kernel.writes}
    for one in (kernel, *kernel.steps, *kernel.leaves):
        one.in_place = found


@dataclass(frozen=True)
class Variant:
    """One kernel with certain sizes.

    Attributes:
        tensors: all that it takes.
        results: those that every variant writes; others are working memory of this one.
    """

    source: Source
    tensors: Mapping[str, Stored]
    results: tuple[str, ...]


def variant(planning: Planning, kernel: Kernel, key: str, choice: Choice | None) -> Variant:
    """A kernel of the planning with the sizes of a choice, or with the cost model's."""
    tensors = dict(planning.tensors)
    own = copied(kernel)
    planning.scheduler(tensors, {key: choice} if choice is not None else None).schedule_launch(own)
    if own.steps:
        others = [copied(other) for other in planning.kernels if other is not kernel]
        keep_rows([own, *others], tensors, planning.program.outputs)
        own.note_borders()
        tensors |= counters([own])
    used = {t: tensors[t] for t in (*own.reads, *own.writes)}
    _pack_constants(used, planning.program.constants)
    return Variant(emit(own, planning.target, {**tensors, **used}), used, own.writes if own.steps else kernel.writes)


def build(
    graph: Graph,
    base: RuleBase,
    profile: Profile,
    level: str,
    dtype: str = "float32",
    memory: str = "auto",
    layout: str = "exact",
    choices: Mapping[str, Choice] | None = None,
    wide: Collection[str] = (),
) -> Plan:
    """Plan the kernels of a graph; see `prepare` and `finish`."""
    return finish(prepare(graph, base, profile, level, dtype, memory, layout, wide), choices)


def _times(
    tensors: Mapping[str, Stored],
    schedules: tuple[ContractionSchedule, ...],
    profile: Profile,
    dtype: str,
    wide: Collection[str],
) -> KernelTimes:
    """The model of how long kernels take."""
    constants = {name for name, stored in tensors.items() if stored.role == "constant"}
    roofs = profile.roofs
    texture = None if roofs is None else TextureTiles(roofs, dtype, constants, frozenset(wide))
    element = storage_dtype(dtype).itemsize
    return KernelTimes(schedules, profile.machine, profile.local_memory, constants, tensors, texture, element)


def _beside_in_groups(
    kernels: list[Kernel], planning: Planning, scheduler: Scheduler, tensors: dict[str, Stored]
) -> list[Kernel]:
    """Kernels of GPUs side by side: only when they are sized it is known how many work-groups they have."""
    rule, device = planning.beside, planning.profile.occupancy
    if rule is None or device is None or planning.target.is_cpu:
        return kernels
    unsized = {kernel.name: kernel for kernel in planning.kernels}
    shares = Shares(scheduler, tensors, planning.profile.machine, planning.profile.local_memory, unsized)
    candidates = [Candidate(kernel, shares.of(kernel)) for kernel in kernels]
    return side_by_side_in_groups(candidates, rule, device, shares.again)


def _stored(kernels: Sequence[Kernel], program: Program, dtype: str, wide: Collection[str]) -> dict[str, Stored]:
    tensors: dict[str, Stored] = {}
    written = {t for k in kernels for t in k.writes}
    names = dict.fromkeys([*program.inputs, *(t for k in kernels for t in (*k.reads, *k.writes)), *program.outputs])
    for name in names:
        type_ = program.types[name]
        if name in program.outputs and name in written:
            role = "output"
        elif name in written:
            role = "intermediate"
        elif name in program.constants:
            role = "constant"
        else:
            role = "input"
        border = role in ("input", "output")
        free = type_.dtype in ("float32", "float16", "bfloat16") and not border and name not in wide
        if free and role == "constant" and not holds(dtype, program.constants[name]):
            free = False
        storage = dtype if free else device_dtype(type_.dtype)
        shown = program.shown.get(name)
        tensors[name] = Stored(name, type_, row_major(len(type_.shape)), role, storage, shown=shown)
    return tensors


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
