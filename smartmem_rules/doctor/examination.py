"""The examination of a model on a device: each kernel by its probes, the whole model, the launch that goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from smartmem_rules.doctor.reproduction import ReproductionError, write_reproduction
from smartmem_rules.doctor.walk import Walk, walked
from smartmem_rules.graph.loading import ModelSource
from smartmem_rules.graph.model import Graph
from smartmem_rules.optimized import OptimizedPlan
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.probe import Probe
from smartmem_rules.plan.scheduling import Scheduled
from smartmem_rules.planned import PlanOptions, planned
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import Device, DeviceError
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.feeds import check_feeds
from smartmem_rules.runtime.reference import Check, NoReferenceError
from smartmem_rules.runtime.selftest.report import Report, WrongKernelError, repaired
from smartmem_rules.runtime.selftest.testing import asker_of, self_test
from smartmem_rules.stages import Clock, Progress


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What `smartmem doctor` found.

    Attributes:
        report: of the kernels' probes.
        check: of the whole model as it would run, replacements included; None where it was not asked for.
        no_check: why there is no such check.
        walk: along the launches, where the model is wrong although its kernels answered right.
        files: programs that show wrong kernels, two files each.
        unwritten: kernels for which there is none, with the reason.
    """

    model: str
    report: Report
    check: Check | None
    no_check: str
    walk: Walk | None
    files: tuple[Path, ...]
    unwritten: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        step = self.walk is not None and self.walk.step is not None
        return not self.report.findings and (self.check is None or self.check.passed is not False) and not step

    def data(self) -> dict[str, object]:
        """JSON data."""
        walk = None
        if self.walk is not None:
            step = self.walk.step
            walk = {
                "looked_at": self.walk.looked_at,
                "unasked": dict(self.walk.unasked),
                "launch": None if step is None else step.number,
                "kernel": None if step is None else step.kernel,
                "differences": [] if step is None else list(map(str, step.differences)),
            }
        return {
            "model": self.model,
            "healthy": self.healthy,
            "report": self.report.data(),
            "check": None if self.check is None else self.check.data(),
            "no_check": self.no_check,
            "walk": walk,
            "files": list(map(str, self.files)),
            "unwritten": list(self.unwritten),
        }


def examine(
    model: ModelSource,
    folder: Path,
    seed: int = 0,
    every_launch: bool = False,
    progress: Progress | None = None,
    **options: Unpack[PlanOptions],
) -> Examination:
    """Examine a model on a device; the options are arguments of `optimize`.

    Args:
        folder: where programs go that show wrong kernels; made only if there are any.
        seed: of the model's inputs.
        every_launch: walk along the launches also where the model's outputs are right.

    Raises:
        DeviceError: the device is not on this computer.
        What `optimize` raises, but for `WrongKernelError`.
    """
    clock = Clock(progress)
    watch = _Watch()
    options["probes"] = True
    plan, target = planned(model, clock, watch=watch, **options)
    if target.device is None:
        raise DeviceError(f"there is no OpenCL device here to examine this plan for {plan.device}")
    device = target.device
    executor = Executor(plan, device, lambda done, total: clock.step("build", done, total))
    report = self_test(executor)
    checked, reason, runs = _checked(plan, device, model, seed, report)
    walk = None
    if runs is not None and (every_launch or (checked is not None and checked.passed is False)):
        feeds = OptimizedPlan(runs.plan, device, model).random_feeds(seed)
        last = watch.seen[-1]
        walk = walked(runs, last.tensors, last.planning.graph.constants, check_feeds(runs.input_types, feeds))
    writer = _Writer(plan, device, folder)
    writer.findings(executor, report)
    if walk is not None and walk.step is not None:
        writer.write(walk.step.probe, tuple(map(str, walk.step.differences)))
    return Examination(
        model=plan.model,
        report=report,
        check=checked,
        no_check=reason,
        walk=walk,
        files=tuple(writer.files),
        unwritten=tuple(writer.unwritten),
    )


class _Watch:
    """Keeps the scheduled launches of a plan, whose expressions say what kernels must compute."""

    takes_constants = True

    def __init__(self) -> None:
        self.seen: list[Scheduled] = []

    def imported(self, graph: Graph) -> None:
        """The graph is kept with the launches."""

    def scheduled(self, scheduled: Scheduled) -> None:
        """Look at scheduled launches."""
        self.seen.append(scheduled)


def _checked(
    plan: Plan, device: Device, model: ModelSource, seed: int, report: Report
) -> tuple[Check | None, str, Executor | None]:
    """The check of the model as it would run, why there is none, and what ran."""
    try:
        sound = repaired(plan, report)
    except WrongKernelError:
        return None, "a kernel is wrong that nothing replaces", None
    optimized = OptimizedPlan(sound, device, model)
    try:
        return optimized.check(seed=seed), "", optimized.prepare()
    except NoReferenceError as error:
        return None, str(error), optimized.prepare()


class _Writer:
    """Writes programs that show wrong kernels."""

    def __init__(self, plan: Plan, device: Device, folder: Path) -> None:
        self._plan = plan
        self._device = device
        self._folder = folder
        self.files: list[Path] = []
        self.unwritten: list[str] = []

    def findings(self, executor: Executor, report: Report) -> None:
        """A program for each kernel that answered a probe wrongly."""
        asker = asker_of(executor)
        for finding in report.findings:
            own = [probe for probe in self._plan.probes if probe.launches == finding.launches]
            wrong = next((probe for probe in own if next(asker.differences(probe), None) is not None), None)
            if wrong is None:
                self.unwritten.append(f"{finding.kernel}: it answered right when it was asked again")
                continue
            self.write(wrong, finding.differences)

    def write(self, probe: Probe, differences: tuple[str, ...]) -> None:
        """The program of one kernel."""
        source = self._plan.enqueues[probe.launches[0]].source
        try:
            self.files += write_reproduction(self._plan, probe, source, differences, self._device, self._folder)
        except ReproductionError as error:
            self.unwritten.append(str(error))
