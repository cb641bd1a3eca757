"""The report of a model or a plan, with its levels and another plan to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_rules.explanation.making import Watch
from smartmem_rules.explanation.model_nodes import is_graph
from smartmem_rules.optimized import OptimizedPlan
from smartmem_rules.pipeline import level_of
from smartmem_rules.planned import DEFAULT_LEVEL, PlanOptions, planned
from smartmem_rules.records import dataclass
from smartmem_rules.report.data import LevelFigures, report
from smartmem_rules.report.subject import Subject
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.plan_file import is_plan_file, load_plan
from smartmem_rules.runtime.target import device_for
from smartmem_rules.stages import Clock, Progress

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.report.documents import ModelReport


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One plan that a report is to show.

    Attributes:
        source: what `optimize` takes, or the path of a saved plan.
        options: arguments of `optimize`, for a model.
    """

    source: Any
    options: PlanOptions

    @property
    def level(self) -> str:
        """The level that a model is planned at."""
        return str(self.options.get("level", DEFAULT_LEVEL))

    @property
    def is_plan(self) -> bool:
        """Whether it is a saved plan."""
        return isinstance(self.source, str | Path) and is_plan_file(self.source)


def report_data(
    asked: Asked,
    levels: Sequence[str] = (),
    other: Asked | None = None,
    measures: bool = True,
    measures_levels: bool = False,
    checks: bool = False,
    progress: Progress | None = None,
) -> ModelReport:
    """What `smartmem report --json` prints.

    Args:
        levels: that the model is planned at besides; of a saved plan there are none.
        other: what is compared with the plan.
        measures: times are taken where the plan's device is here.
        measures_levels: those of the levels as well, for which their kernels are built.
        checks: the outputs are compared with a reference's.

    Raises:
        PlanError: there is no level of this name, in addition to what `optimize` raises.
    """
    for one, asks in ((asked, [*levels, asked.level]), (other, [] if other is None else [other.level])):
        if one is not None and not one.is_plan:
            base = load_rules(one.options.get("rules", ()))
            for level in asks:
                level_of(level, base)
    second = None if other is None else _subject(other, measures, False, progress)
    subject = _subject(asked, measures, checks, progress)
    own = subject.plan.level
    figures = []
    for level in () if asked.is_plan else levels:
        at_level = replace(asked, options={**asked.options, "level": level})
        figures.append(LevelFigures.of(subject if level == own else _figures_only(at_level, measures_levels, progress)))
    return report(subject, figures, second)


def _figures_only(asked: Asked, measures: bool, progress: Progress | None) -> Subject:
    """A plan of which only figures are shown: the texts of its stages, which take longer than it, are not made."""
    return _subject(asked, measures, False, progress, keeps_stages=False)


def _subject(
    asked: Asked, measures: bool, checks: bool, progress: Progress | None, keeps_stages: bool = True
) -> Subject:
    """A plan with what a report shows of it."""
    rules = asked.options.get("rules", ())
    if asked.is_plan:
        plan = load_plan(asked.source)
        device = device_for(plan.statistics.device, asked.options.get("device", "auto"))
        return OptimizedPlan(plan, device, rules=rules).subject(measures)
    stages: dict[str, str] = {}
    watch = Watch()
    clock = Clock(progress, stages.__setitem__ if keeps_stages else None)
    plan, target = planned(asked.source, clock, watch=watch, **asked.options)
    plan = replace(plan, statistics=replace(plan.statistics, seconds=clock.table()))
    optimized = OptimizedPlan(plan, target.device, None if is_graph(asked.source) else asked.source, rules=rules)
    optimized.making = watch.making(clock.spans)
    if target.device is not None and (measures or checks):
        with clock.stage("build"):
            optimized.prepare(lambda done, total: clock.step("build", done, total))
    if target.device is not None and checks and optimized.model is not None:
        optimized.check_or_reason()
    return optimized.subject(measures, stages)
