"""From an extracted graph to kernels over tensors with layouts: the stages `fuse` and `layout`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.device import Device, ImageLimits
from smartmem_rules.language.blocks.fuse import Horizontal, Megakernel
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.language.blocks.schedule import Elementwise, Schedule, Tile, Winograd
from smartmem_rules.plan.fusion.alternatives import Limits
from smartmem_rules.plan.fusion.policy import Policy, policy_of
from smartmem_rules.plan.fusion.program import Program, flatten
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.joint import JointChoice, choose_kernels
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, PlanError, Stored, row_major
from smartmem_rules.plan.kernel.packing import holds
from smartmem_rules.plan.launch.launches import FusionInput, launches, same, settle
from smartmem_rules.plan.layout.accesses import RegisterBlock
from smartmem_rules.plan.layout.candidates import LayoutOptions, LayoutSpace
from smartmem_rules.plan.layout.choose import LayoutChoice, choose_layouts, lay_out_row_major, solve_layouts
from smartmem_rules.plan.printer import fused_text, layouts_text
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.plan.schedule.elementwise import Choice, element_schedules
from smartmem_rules.plan.schedule.loops import TEXEL_LANES
from smartmem_rules.plan.schedule.scheduler import Scheduler, candidates, on_device
from smartmem_rules.plan.schedule.templates import Templates
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.stages import Stages, Unmeasured
from smartmem_rules.tensor.primitives import device_dtype


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Fused kernels over tensors with layouts, before the kernels are sized.

    Attributes:
        tensors: without the packed factors that scheduling adds.
        width: elements of a vector in buffers.
        layouts: how well the layouts were chosen, None where tensors stay row-major.
        joint: how well kernels were chosen together with them, None where the fusion rules alone made them.
        megakernel: which launches become one whose work-items wait for each other.
        refusals: takes in why kernels and launches stay apart, where somebody asks.
    """

    graph: Graph
    profile: Device
    level: str
    dtype: str
    program: Program
    launches: tuple[Launch, ...]
    tensors: Mapping[str, Stored]
    schedules: tuple[Schedule, ...]
    elementwise: Mapping[str, Elementwise]
    limits: ImageLimits | None
    width: int
    layouts: LayoutChoice | None
    joint: JointChoice | None
    in_place: bool
    wide: Collection[str] = ()
    horizontal: Horizontal | None = None
    megakernel: Megakernel | None = None
    refusals: Refusals | None = None

    def scheduler(self, tensors: dict[str, Stored], choices: Mapping[str, Choice] | None) -> Scheduler:
        """Sizes kernels; packed factors go into `tensors`."""
        profile = self.profile
        return Scheduler(
            device=profile,
            schedules=self.schedules,
            constants=self.program.packable,
            tensors=tensors,
            storage=self.dtype,
            limits=self.limits,
            choices=choices,
            elementwise=self.elementwise,
            wide=self.wide,
            width=self.width,
        )


def prepare(
    graph: Graph,
    base: RuleBase,
    profile: Device,
    level: str,
    dtype: str = "float32",
    memory: str = "auto",
    layout: str = "exact",
    wide: Collection[str] = (),
    clock: Stages | None = None,
    refusals: Refusals | None = None,
) -> Planning:
    """Fuse a graph's equations to kernels and lay out their tensors.

    Args:
        level: a level of levels.smr.
        dtype: how floating-point tensors are stored (float32, float16); sums are always float32.
        memory: image or buffer for all tensors; auto leaves it to the level whether the device profile decides,
            preferred does not.  A profile that prefers images leaves the choice between both to the costs of layouts.
        layout: exact chooses for all tensors together, and kernels with them where the level says so; local edge by
            edge, for the kernels of the fusion rules.
        wide: tensors that are stored as float32, because their values exceed what halves hold; so are tensors
            inside of operators.
        clock: measures the stages `fuse` and `layout`.
        refusals: takes in why kernels stay apart.

    Raises:
        PlanError: the level is unknown, or no kernel or schedule exists for something.
    """
    clock = clock or Unmeasured()
    means = _means(base, profile, level, dtype, memory, bool(graph.dimensions))
    policy, schedules = means.policy, means.schedules
    with clock.stage("fuse"):
        program = flatten(graph, policy.reads_through_views)
        # an operator rounds its outputs alone, however many kernels it takes
        storage = _Storage(dtype, program.inner.union(wide))
        fusion = FusionInput(
            program=program,
            policy=policy,
            schedules=schedules,
            local_memory=profile.memory.local_memory,
            refusals=refusals,
        )
        own = fusion.kernels()
    where = _layout_options(base, level, profile, program, own, means)
    exact = layout == "exact"
    with clock.stage("fuse"):
        joint = None
        if policy.chooses_kernels and exact:
            fused, joint = _joint_choice(fusion, own, where, storage)
        else:
            fused = launches(own, fusion, profile)
    clock.show("fuse", lambda: fused_text(fused))
    with clock.stage("layout"):
        laid, tensors, layouts = _laid_out(fused, joint, program, where, storage, policy.chooses_layouts, exact)
    clock.show("layout", lambda: layouts_text(tensors, layouts))
    return Planning(
        graph=graph,
        profile=profile,
        level=level,
        dtype=dtype,
        program=program,
        launches=tuple(laid),
        tensors=tensors,
        schedules=schedules,
        elementwise=element_schedules(base.schedules, profile.kind, means.memory),
        limits=profile.memory.limits if means.memory == "image" else None,
        width=TEXEL_LANES if means.memory == "image" else profile.compute.vector_width,
        layouts=layouts,
        joint=joint,
        in_place=policy.writes_in_place,
        wide=storage.wide,
        horizontal=policy.rule(Horizontal),
        megakernel=policy.rule(Megakernel) if profile.compute.ordered_launches else None,
        refusals=refusals,
    )


@dataclass(frozen=True, kw_only=True)
class _Means:
    """What a level and a device offer to kernels.

    Attributes:
        policy: which equations are fused, and how layouts and memory are chosen.
        memory: what the schedules are for, image or buffer.
        kinds: where single tensors may lie.
    """

    policy: Policy
    memory: str
    kinds: tuple[str, ...]
    schedules: tuple[Schedule, ...]


def _means(base: RuleBase, profile: Device, level: str, dtype: str, memory: str, open_extents: bool) -> _Means:
    """The means of a level on a device; the fusion rules are those that the schedules can realise.

    Args:
        memory: as for `prepare`.
        open_extents: whether the plan is made for ranges of extents.

    Raises:
        PlanError: the level is unknown, or no schedule is admitted.
    """
    if level not in base.levels:
        raise PlanError(f"there is no level {level}; the rule files define {', '.join(base.levels)}")
    policy = policy_of(base.levels[level], base.tables, base.fuses)
    memory, kinds = _memory(memory, policy, profile)
    schedules = candidates(base.schedules, profile.kind, memory, policy.tuned, open_extents)
    schedules = on_device(schedules, profile)
    # transformed weights of few bits would lose too much
    schedules = tuple(s for s in schedules if not isinstance(s, Winograd) or dtype == "float32")
    return _Means(
        policy=policy.within({s.template for s in schedules}), memory=memory, kinds=kinds, schedules=schedules
    )


@dataclass(frozen=True)
class _Storage:
    """How floating-point tensors are stored; those in `wide` are float32, of models in halves as well."""

    dtype: str
    wide: frozenset[str]


def _layout_options(
    base: RuleBase,
    level: str,
    profile: Device,
    program: Program,
    kernels: Sequence[Kernel],
    means: _Means,
) -> LayoutOptions:
    """What the choice of layouts is about."""
    # weights that a recurrence reads at every step: the elements that it sums up lie side by side as they come
    fixed = [*program.outputs, *(t for k in kernels if k.form == "scan" for t in (*k.writes, *k.reads))]
    block = _register_block(means.schedules, profile.compute.wave if "image" in means.kinds else 0)
    return LayoutOptions(
        costs=_weights(base, level),
        device=profile,
        kinds=means.kinds,
        fixed=fixed,
        constants=program.packable.keys(),
        block=block,
        launched=(),
    )


def _joint_choice(
    fusion: FusionInput, by_rules: Sequence[Kernel], where: LayoutOptions, storage: _Storage
) -> tuple[list[Launch], JointChoice]:
    """Kernels chosen together with their layouts, and their launches."""
    profile = where.device
    pool = fusion.pool(Limits(where.costs.configurations, where.costs.further_kernels))
    stored = _stored(pool.kernels, fusion.program, storage)
    costs = _costs(stored, fusion.program.packable, fusion.schedules, profile, storage)
    # without a choice of layouts kernels are compared as if all lay in the order of their axes
    there = where if fusion.policy.chooses_layouts else replace(where, fixed=stored.keys())
    joint = choose_kernels(pool, stored, there, {n: costs.of(k) for n, k in enumerate(pool.kernels)})
    return settle(joint, by_rules, fusion, profile, costs)


def _laid_out(
    fused: list[Launch],
    joint: JointChoice | None,
    program: Program,
    where: LayoutOptions,
    storage: _Storage,
    chooses: bool,
    exact: bool,
) -> tuple[list[Launch], dict[str, Stored], LayoutChoice | None]:
    """The launches with those that copy layouts, the tensors with their layouts, and how well these were chosen."""
    if joint is not None and chooses and same(fused, joint.kernels):
        # the layouts were chosen for these very kernels
        answer = joint.answer
        tensors = dict(answer.problem.space.tensors)
    else:
        kernels = [kernel for launch in fused for kernel in launch.kernels]
        tensors = _stored(kernels, program, storage)
        launched = {kernel.name for launch in fused for kernel in launch.kernels if launch.steps}
        space = LayoutSpace(kernels, tensors, replace(where, launched=launched))
        if not chooses:
            return _over(fused, lay_out_row_major(space, tensors, program.constants)), tensors, None
        answer = solve_layouts(space, exact)
    layouts = choose_layouts(answer, tensors, program.constants, exact)
    return _with_copiers(_over(fused, layouts.kernels), layouts), tensors, layouts


def _over(fused: Sequence[Launch], kernels: Mapping[str, Kernel]) -> list[Launch]:
    """The launches of kernels that read the layouts that suit them."""
    return [launch.each(lambda one: replace(one, kernel=kernels[one.name])) for launch in fused]


def _memory(memory: str, policy: Policy, profile: Device) -> tuple[str, tuple[str, ...]]:
    """What schedules are for, image or buffer, and where single tensors may lie."""
    if memory == "auto":
        memory = "preferred" if policy.prefers_device_memory else "buffer"
    if memory != "preferred":
        return memory, (memory,)
    # where buffers are no slower than textures, nothing speaks for an image
    both = profile.prefers == "image" and policy.chooses_layouts
    return profile.prefers, ("image", "buffer") if both else (profile.prefers,)


def _weights(base: RuleBase, level: str) -> LayoutWeights:
    """The weights of the level's layout block; those of the schema where it leaves tensors row-major."""
    own = base.levels[level]
    return base.layouts[own.layout] if own.layout else LayoutWeights(name="row_major", block=own.block)


def _register_block(schedules: tuple[Schedule, ...], wave: int) -> RegisterBlock | None:
    """The block of sums for which a contraction on textures reads its operands from memory, by its first schedule."""
    first = schedules[0]
    return RegisterBlock(first.rows[0], first.columns[0], wave) if isinstance(first, Tile) else None


def _with_copiers(laid: Sequence[Launch], layouts: LayoutChoice) -> list[Launch]:
    """The launches with those that copy a tensor to its second layout, each before the first that reads it there."""
    before: dict[str, list[Kernel]] = {}
    for kernel, reader in layouts.copiers:
        before.setdefault(reader, []).append(kernel)
    found: list[Launch] = []
    for launch in laid:
        for one in launch.kernels:
            found += [Single(kernel=copier) for copier in before.get(one.name, [])]
        found.append(launch)
    return found


def _costs(
    tensors: Mapping[str, Stored],
    packable: Collection[str],
    schedules: tuple[Schedule, ...],
    profile: Device,
    storage: _Storage,
) -> KernelCosts:
    """The model of how long kernels take."""
    constants = {name for name, stored in tensors.items() if stored.role == "constant" and name in packable}
    return KernelCosts(
        templates=Templates(
            device=profile,
            schedules=schedules,
            constants=constants,
            tensors=tensors,
            storage=storage.dtype,
            wide=storage.wide,
        )
    )


def _stored(kernels: Sequence[Kernel], program: Program, storage: _Storage) -> dict[str, Stored]:
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
        free = type_.dtype in ("float32", "float16", "bfloat16") and not border and name not in program.compared
        if free and role == "constant" and not holds(storage.dtype, program.constants[name]):
            free = False
        held = storage.dtype if free else device_dtype(type_.dtype)
        if free and role == "intermediate" and name in storage.wide:
            held = "float32"
        shown = program.shown.get(name)
        tensors[name] = Stored(
            name=name, type=type_, layout=row_major(len(type_.shape)), role=role, storage=held, shown=shown
        )
    return tensors
