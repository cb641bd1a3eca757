"""The modelled figures of the sizes that a kernel could have: what its schedule was chosen by."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language.blocks.schedule import Group, Panel
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.schedule.contraction.panel import PanelProblem
from smartmem_rules.plan.schedule.records import PanelSchedule, schedule_of
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Figures:
    """Sizes with their figures, in a unit of the template's cost model."""

    unit: str = ""
    of: tuple[tuple[Mapping[str, int], float], ...] = ()

    def shown(self, chosen: Mapping[str, int], count: int) -> list[tuple[Mapping[str, int], float, bool]]:
        """The chosen sizes and the cheapest so many, the cheapest first, each with whether it was chosen."""
        ordered = sorted(self.of, key=lambda one: one[1])
        named = {name for sizes, _ in ordered for name in sizes} & set(chosen)
        own = {name: chosen[name] for name in named}
        marked = [(one, cost, bool(own) and own.items() <= one.items()) for one, cost in ordered]
        return [one for place, one in enumerate(marked) if place < count or one[2]]


def figures(scheduler: Scheduler, launch: Single) -> Figures:
    """The sizes of a scheduled contraction that were weighed; none for templates that follow fixed rules."""
    kernel = launch.kernel
    c = kernel.contraction
    own = kernel.schedule
    schedule = next((s for s in scheduler.schedules if own is not None and s.name == own.name), None)
    if c is None or schedule is None:
        return Figures()
    if isinstance(schedule, Group):
        unit, found = scheduler.costs.tile_figures(kernel)
        return Figures(unit, tuple((choice.sizes(), cost) for choice, cost in found))
    if isinstance(schedule, Panel):
        constant = any(one is not None for one in schedule_of(kernel, PanelSchedule).packed)
        problem = PanelProblem(kernel, c, schedule, constant, launch.block_rows)
        default = problem.default()
        sizes = dict.fromkeys([*problem.space(), *([] if default is None else [default])])
        return Figures("vector operations", tuple((one.choice(), problem.estimate(one)) for one in sizes))
    return Figures()
