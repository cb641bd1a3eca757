"""From scheduled launches to a plan: OpenCL C for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.demands import demands_of
from smartmem_rules.emit.emit import emit
from smartmem_rules.emit.gathered import gathered_plan
from smartmem_rules.invariants.verify import in_full, verify_kernels, verify_plan
from smartmem_rules.plan.artefact import Demands, Enqueue, Plan, Source
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import PlanError, Stored
from smartmem_rules.plan.printer import sources_text
from smartmem_rules.plan.schedule.elementwise import Choice
from smartmem_rules.plan.scheduling import Scheduled, schedule, schedule_alone
from smartmem_rules.records import dataclass
from smartmem_rules.stages import Stages, Unmeasured
from smartmem_rules.statistics import PlanStatistics, Statistics
from smartmem_rules.tensor.extents import SymbolicExtentError, dimensions_needed, flags_of


def finish(
    planning: Planning,
    choices: Mapping[str, Choice] | None = None,
    *,
    observed: bool = False,
    keep_launches: bool = False,
    owned: bool = False,
    clock: Stages | None = None,
    probes: bool = False,
    watch: Callable[[Scheduled], None] | None = None,
) -> Plan:
    """Schedule fused kernels and emit them; see `plan.scheduling.schedule` for the arguments.

    Args:
        probes: the plan is to test itself.
        watch: takes in the scheduled launches, whose expressions and constants a plan need not have.
    """
    clock = clock or Unmeasured()
    with clock.stage("verify"):
        verify_kernels(planning.launches, planning.tensors, planning.program.outputs, in_full())
    scheduled = schedule(planning, choices, observed=observed, keep_launches=keep_launches, owned=owned, clock=clock)
    if watch is not None:
        watch(scheduled)
    with clock.stage("emit"):
        plan = emit_plan(scheduled)
    clock.show("emit", lambda: sources_text(plan))
    with clock.stage("verify"):
        verify_plan(plan, in_full())
    with clock.stage("emit"):
        target = _target(planning)
        plan = gathered_plan(plan, lambda launch, tensors: _emitted(launch, target, tensors))
    if not probes:
        return plan
    with clock.stage("probes"):
        return testing_itself(plan, scheduled)


def testing_itself(plan: Plan, scheduled: Scheduled) -> Plan:
    """The plan of scheduled launches with probes, and with other schedules for launches whose probe fails."""
    from smartmem_rules.emit.spares import spares_of  # start-up time
    from smartmem_rules.probes.making import probes_of  # start-up time

    tensors = {**scheduled.tensors, **plan.tensors}  # launches may have gathered theirs
    made = probes_of(plan, tensors, scheduled.planning.graph.constants)
    target = _target(scheduled.planning)
    return replace(
        plan,
        probes=made.probes,
        unasked={number: one.reason for one in made.unasked for number in one.launches},
        enqueues=[replace(one, spares=spares_of(one.launch, one.source, target, tensors)) for one in plan.enqueues],
    )


def emit_plan(scheduled: Scheduled) -> Plan:
    """The plan of scheduled launches.

    Raises:
        PlanError: the kernel of some operators needs an open extent as a number.
    """
    planning, memory = scheduled.planning, scheduled.memory
    graph = planning.graph
    target = _target(planning)
    enqueues = [
        Enqueue(launch=launch, source=_emitted(launch, target, scheduled.tensors)) for launch in scheduled.launches
    ]
    return Plan(
        model=graph.name,
        device=planning.profile.name,
        level=planning.level,
        dtype=planning.dtype,
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        tensors=scheduled.stored,
        enqueues=enqueues,
        slots=memory.slots,
        placement=memory.placement,
        sizes=graph.sizes,
        endings=graph.endings,
        dimensions=graph.dimensions,
        statistics=Statistics(planning=_statistics(scheduled)),
        demands=demands_of(planning.profile, (one.source for one in enqueues)),
    )


def _statistics(scheduled: Scheduled) -> PlanStatistics:
    layouts, joint = scheduled.planning.layouts, scheduled.planning.joint
    return PlanStatistics(
        layouts=None if layouts is None else layouts.statistics,
        joint=None if joint is None else joint.statistics,
        tensor_layouts={} if layouts is None else layouts.described,
        memory=scheduled.memory.memory,
    )


@dataclass(frozen=True)
class Variant:
    """One launch with certain sizes.

    Attributes:
        tensors: all that it takes.
        results: those that every variant writes; others are working memory of this one.
        demands: what it asks of a device.
    """

    source: Source
    tensors: Mapping[str, Stored]
    results: tuple[str, ...]
    demands: Demands


def variant(planning: Planning, launch: Launch, key: str, choice: Choice | None) -> Variant:
    """A launch of the planning with the sizes of a choice, or with the cost model's."""
    own, tensors = schedule_alone(planning, launch, key, choice)
    used = {t: tensors[t] for t in (*own.reads, *own.writes)}
    source = emit(own, _target(planning), tensors)
    results = own.writes if own.steps else launch.writes
    return Variant(source, used, results, demands_of(planning.profile, [source]))


def _target(planning: Planning) -> Target:
    return Target(planning.profile, planning.width, dimensions=planning.graph.dimensions)


def _emitted(launch: Launch, target: Target, tensors: Mapping[str, Stored]) -> Source:
    with _for_ranges(launch):
        return emit(launch, target, tensors)


@contextmanager
def _for_ranges(launch: Launch) -> Iterator[None]:
    """Name the operators whose kernel needs an open extent as a number."""
    try:
        yield
    except SymbolicExtentError as error:
        needed = sorted(dimensions_needed(error), key=lambda one: one.name)
        give = f"; give one extent: {flags_of(needed)}" if needed else ""
        origin = ", ".join(launch.origin)
        raise PlanError(f"the kernel of {origin} cannot take a range of extents: {error}{give}") from error
