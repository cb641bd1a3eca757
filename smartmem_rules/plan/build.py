"""From an extracted graph to kernels over tensors with layouts: the stages `fuse` and `layout`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.graph.described import some
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.device import Device, ImageLimits
from smartmem_rules.language.blocks.fuse import Horizontal, InOrder, Megakernel
from smartmem_rules.language.blocks.schedule import Elementwise, Schedule
from smartmem_rules.plan.fusion.alternatives import Limits
from smartmem_rules.plan.fusion.equations.integer_sums import sums_as
from smartmem_rules.plan.fusion.equations.known import with_known_inside
from smartmem_rules.plan.fusion.equations.program import Program, flatten
from smartmem_rules.plan.fusion.equations.tables import with_tables_in_memory
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.joint import JointChoice, choose_kernels
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Stored, row_major
from smartmem_rules.plan.kernel.packing import holds, limits
from smartmem_rules.plan.launch.launches import FusionInput, launches, same, settle
from smartmem_rules.plan.layout.candidates import LayoutOptions, LayoutSpace
from smartmem_rules.plan.layout.choose import LayoutChoice, choose_layouts, lay_out_row_major, solve_layouts
from smartmem_rules.plan.means import Means, PlanOptions, means_of
from smartmem_rules.plan.printer import fused_text, layouts_text
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.plan.schedule.elementwise import Choice, element_schedules
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.plan.schedule.templates import Templates
from smartmem_rules.records import dataclass
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
        in_order: which kernels of work-groups share a launch in which work-groups take tasks in order.
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
    in_order: InOrder | None = None
    refusals: Refusals | None = None

    def alone(self) -> Planning:
        """The same with tables of constants of its own, for a caller that drops this one and the graph."""
        program = replace(self.program, constants=some(self.program.constants), packable=some(self.program.packable))
        return replace(self, graph=replace(self.graph, constants={}), program=program)

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
    options: PlanOptions,
    clock: Stages | None = None,
    refusals: Refusals | None = None,
) -> Planning:
    """Fuse a graph's equations to kernels and lay out their tensors.

    Args:
        clock: measures the stages `fuse` and `layout`.
        refusals: takes in why kernels stay apart.

    Raises:
        PlanError: the level is unknown, or no kernel or schedule exists for something.
    """
    clock = clock or Unmeasured()
    means = means_of(base, profile, options, bool(graph.dimensions))
    with clock.stage("fuse"):
        fused = _fused(graph, means, options, refusals)
    clock.show("fuse", lambda: fused_text(fused.launches))
    with clock.stage("layout"):
        laid = _laid_out(fused, means, options.layout == "exact")
    clock.show("layout", lambda: layouts_text(laid.tensors, laid.layouts))
    return Planning(
        graph=graph,
        profile=profile,
        level=options.level,
        dtype=options.dtype,
        program=fused.program,
        launches=tuple(laid.launches),
        tensors=laid.tensors,
        schedules=means.schedules,
        elementwise=element_schedules(base.schedules, profile.kind, means.memory),
        limits=means.limits,
        width=means.width,
        layouts=laid.layouts,
        joint=fused.joint,
        in_place=means.policy.writes_in_place,
        wide=fused.storage.wide,
        horizontal=means.horizontal,
        megakernel=means.megakernel,
        in_order=means.in_order,
        refusals=refusals,
    )


@dataclass(frozen=True, kw_only=True)
class _Fused:
    """What the stage `fuse` gives.

    Attributes:
        joint: how well kernels were chosen together with layouts, None where the fusion rules alone made them.
        space: what the choice of layouts is about.
    """

    program: Program
    storage: _Storage
    launches: list[Launch]
    joint: JointChoice | None
    space: LayoutOptions


def _fused(graph: Graph, means: Means, options: PlanOptions, refusals: Refusals | None) -> _Fused:
    """The launches of a graph, of the kernels that the rules make or that are chosen together with layouts."""
    policy = means.policy
    program = flatten(graph, policy.reads_through_views, means.deferred)
    if policy.table is not None:
        program = with_known_inside(program)
    program = with_tables_in_memory(program, means.device.memory.table_elements)
    program = sums_as(program, policy.products)
    # an operator rounds its outputs alone, however many kernels it takes
    storage = _Storage(options.dtype, program.inner.union(options.wide))
    fusion = FusionInput(
        program=program,
        policy=policy,
        schedules=means.schedules,
        local_memory=means.device.memory.local_memory,
        refusals=refusals,
    )
    by_rules = fusion.kernels()
    space = _layout_options(means, program, by_rules)
    if policy.chooses_kernels and options.layout == "exact":
        fused, joint = _joint_choice(fusion, by_rules, space, storage)
    else:
        fused, joint = launches(by_rules, fusion, means.device), None
    return _Fused(program=program, storage=storage, launches=fused, joint=joint, space=space)


@dataclass(frozen=True)
class _Storage:
    """How floating-point tensors are stored; those in `wide` are float32, of models in halves as well."""

    dtype: str
    wide: frozenset[str]


def _layout_options(means: Means, program: Program, kernels: Sequence[Kernel]) -> LayoutOptions:
    """What the choice of layouts is about."""
    # weights that a recurrence reads at every step: the elements that it sums up lie side by side as they come
    fixed = [*program.outputs, *(t for k in kernels if k.form == "scan" for t in (*k.writes, *k.reads))]
    return LayoutOptions(
        costs=means.weights,
        device=means.device,
        kinds=means.kinds,
        fixed=fixed,
        constants=frozenset(program.packable),
        block=means.register_block,
        launched=(),
        growing=_growing([kernel] for kernel in kernels),
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


@dataclass(frozen=True, kw_only=True)
class _LaidOut:
    """What the stage `layout` gives: the launches with those that copy layouts, and the tensors with their layouts.

    Attributes:
        layouts: how well they were chosen, None where tensors stay row-major.
    """

    launches: list[Launch]
    tensors: dict[str, Stored]
    layouts: LayoutChoice | None


def _laid_out(fused: _Fused, means: Means, exact: bool) -> _LaidOut:
    """The layouts of what the launches read and write; the kernels' own where these were chosen together with them."""
    constants = fused.program.constants
    chooses = means.policy.chooses_layouts
    if fused.joint is not None and chooses and same(fused.launches, fused.joint.kernels):
        # the layouts were chosen for these very kernels
        answer = fused.joint.answer
        tensors = dict(answer.problem.space.tensors)
    else:
        kernels = [kernel for launch in fused.launches for kernel in launch.kernels]
        tensors = _stored(kernels, fused.program, fused.storage)
        launched = {kernel.name for launch in fused.launches for kernel in launch.kernels if launch.steps}
        where = replace(fused.space, launched=launched, growing=_growing(one.kernels for one in fused.launches))
        space = LayoutSpace(kernels, tensors, where)
        if not chooses:
            row_major_kernels = lay_out_row_major(space, tensors, constants)
            return _LaidOut(launches=_over(fused.launches, row_major_kernels), tensors=tensors, layouts=None)
        answer = solve_layouts(space, exact)
    layouts = choose_layouts(answer, tensors, constants, exact)
    laid = with_copiers(_over(fused.launches, layouts.kernels), layouts.copiers)
    return _LaidOut(launches=laid, tensors=tensors, layouts=layouts)


def _growing(launches: Iterable[Sequence[Kernel]]) -> set[str]:
    """Tensors that a launch reads before the last one that writes them has ended, as recurrences do."""
    found = list(enumerate(launches))
    written = {name: number for number, kernels in found for kernel in kernels for name in kernel.writes}
    reads = ((name, number) for number, kernels in found for kernel in kernels for name in kernel.reads)
    return {name for name, number in reads if written.get(name, -1) >= number}


def _over(fused: Sequence[Launch], kernels: Mapping[str, Kernel]) -> list[Launch]:
    """The launches of kernels that read the layouts that suit them."""
    return [launch.each(lambda one: replace(one, kernel=kernels[one.name])) for launch in fused]


def with_copiers(laid: Sequence[Launch], copiers: Sequence[Kernel]) -> list[Launch]:
    """The launches with those that copy a tensor to its second layout, each before the first that reads it there."""
    waiting = {copier.writes[0]: copier for copier in copiers}
    found: list[Launch] = []
    for launch in laid:
        # kernels stand in the order in which layouts were chosen; launches, in the one in which they run
        read = {name for one in launch.kernels for name in one.reads}
        found += [Single(kernel=waiting.pop(copy)) for copy in list(waiting) if copy in read]
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
        else:  # what nothing gives must not pass for an input: `invariants.order` then finds who reads it
            role = "input" if name in program.inputs else "intermediate"
        border = role in ("input", "output")
        exact = name in program.compared or name in program.tables
        free = type_.dtype in ("float32", "float16", "bfloat16") and not border and not exact
        if free and role == "constant" and limits(storage.dtype) and not holds(storage.dtype, program.constants[name]):
            free = False
        held = storage.dtype if free else device_dtype(type_.dtype)
        if free and role == "intermediate" and name in storage.wide:
            held = "float32"
        shown = program.shown.get(name)
        tensors[name] = Stored(
            name=name, type=type_, layout=row_major(len(type_.shape)), role=role, storage=held, shown=shown
        )
    return tensors
