"""Tunes the kernels of a model: the budget goes to them by their share of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, TypedDict

from smartmem_rules.emit.plan import finish, variant
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.kernel.key import launch_key
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.benchmarks import Contender, interleaved
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.executor import Executor, input_types
from smartmem_rules.runtime.feeds import random_feeds
from smartmem_rules.tuning.database import Choice, Place, Tuned, Tunings
from smartmem_rules.tuning.measure import Job, Measured, compare, runnable
from smartmem_rules.tuning.search import Evolution
from smartmem_rules.tuning.workers import Workers

Progress = Callable[[float, float, str], None]
"""Called with the share of the budget that is used, the best milliseconds of all kernels so far, and a shape."""
_PROFILES = 3
_RUNS = 7


class CostModelRatios(TypedDict):
    """How many times slower the cost model's sizes are than the tuned ones; null where nothing was measured."""

    mean_ratio: float | None
    largest_ratio: float | None


class TunedKernel(TypedDict):
    """A kernel whose sizes were searched; `count` others of the model are like it."""

    kernel: str
    label: str
    count: int
    share: float
    choices: int
    trials: int
    done: bool
    default: dict[str, int]
    choice: dict[str, int]
    default_ms: float | None
    best_ms: float | None


@dataclass
class Target:
    """A kernel that can be tuned, with all that are like it.

    Attributes:
        share: of the time of all kernels.
        tuned: what was found, None before anything was measured.
        trials: how many choices were measured in this session.
    """

    launch: Launch
    key: str
    ranked: list[Choice]
    count: int
    milliseconds: float
    share: float
    label: str
    tuned: Tuned | None = None
    trials: int = 0
    done: bool = False

    @property
    def default(self) -> Choice:
        """The cost model's sizes."""
        return self.ranked[0]


@dataclass
class Report:
    """What a session of tuning found."""

    targets: list[Target]
    seconds: float = 0.0
    interrupted: bool = False
    before_ms: float = math.nan
    after_ms: float = math.nan
    failures: list[str] = field(default_factory=list)

    def data(self) -> dict[str, object]:
        """As JSON; `cost_model` is how many times slower the cost model's sizes are than the tuned ones."""
        kernels = [_target_data(one) for one in self.targets]
        measured = [(one, one.tuned) for one in self.targets if one.tuned is not None and one.tuned.default_ms]
        ratios = [tuned.default_ms / tuned.best_ms for _, tuned in measured]
        weights = [one.share for one, _ in measured]
        logs = [weight * math.log(ratio) for weight, ratio in zip(weights, ratios, strict=True)]
        mean = math.exp(sum(logs) / sum(weights)) if ratios else None
        return {
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "trials": sum(one.trials for one in self.targets),
            "before_ms": None if math.isnan(self.before_ms) else self.before_ms,
            "after_ms": None if math.isnan(self.after_ms) else self.after_ms,
            "cost_model": {"mean_ratio": mean, "largest_ratio": max(ratios, default=None)},
            "kernels": kernels,
            "failures": sorted(set(self.failures)),
        }


def _target_data(target: Target) -> TunedKernel:
    tuned = target.tuned
    return {
        "kernel": target.key,
        "label": target.label,
        "count": target.count,
        "share": target.share,
        "choices": len(target.ranked),
        "trials": target.trials,
        "done": target.done,
        "default": target.default,
        "choice": target.default if tuned is None else tuned.choice,
        "default_ms": None if tuned is None else tuned.default_ms,
        "best_ms": None if tuned is None else tuned.best_ms,
    }


class Tuner:
    """One session.

    Args:
        budget: seconds for the search; comparing the whole plans comes after it.
        seed: of the evolution and of the operands.
    """

    def __init__(
        self,
        planning: Planning,
        device: Device,
        database: Tunings,
        workers: Workers,
        budget: float,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.planning = planning
        self.device = device
        self.place = Place(device.name, device.driver, planning.profile.name)
        self.database = database
        self.workers = workers
        self.budget = budget
        self.seed = seed
        self.progress = progress or (lambda used, best, label: None)

    def run(self) -> Report:
        """Search until the budget is used up, all is measured, or the user interrupts; what was found is kept."""
        start = time.perf_counter()
        report = Report(self._targets())
        self._start = time.perf_counter()
        try:
            self._all(report)
        except KeyboardInterrupt:
            report.interrupted = True
        report.seconds = time.perf_counter() - start
        if not report.interrupted:
            report.before_ms, report.after_ms = self._compare()
        return report

    # --- what is tuned ---

    def _targets(self) -> list[Target]:
        """The kernels with a search space, the one with the largest share of the time first."""
        plan = finish(self.planning, self.database.choices(self.place), keep_launches=True)
        executor = Executor(plan, self.device)
        feeds = random_feeds(input_types(plan), self.seed)
        rows = [executor.profile(feeds) for _ in range(_PROFILES)]
        times = [min(row[place][1] for row in rows) for place in range(len(rows[0]))]
        found: dict[str, Target] = {}
        scheduler = self.planning.scheduler(dict(self.planning.tensors), None)
        # the plan may run them in another order
        prepared = {launch.name: launch for launch in self.planning.launches}
        sources = zip(plan.launches, plan.sources, strict=True)
        launched = [prepared[launch.name] for launch, source in sources if all(source.global_size)]
        for launch, milliseconds in zip(launched, times, strict=True):
            ranked = scheduler.space(launch, self.device.compute_units)
            if len(ranked) < 2:
                continue
            key = launch_key(launch, self.planning.tensors)
            share = milliseconds / sum(times)
            if key in found:
                found[key].count += 1
                found[key].share += share
            else:
                found[key] = Target(launch, key, ranked, 1, milliseconds, share, shape(launch))
        for one in self.database.tuned(self.place):
            if one.kernel in found:
                found[one.kernel].tuned = one
        self._rest = sum(times) - sum(one.milliseconds * one.count for one in found.values())
        return sorted(found.values(), key=lambda one: -one.share)

    def _all(self, report: Report) -> None:
        open_share = sum(target.share for target in report.targets)
        for target in report.targets:
            left = self.budget - (time.perf_counter() - self._start)
            if left <= 0:
                return
            # what one kernel leaves over is for the others
            deadline = time.perf_counter() + left * target.share / max(open_share, 1e-9)
            open_share -= target.share
            self._one(report, target, deadline)

    # --- one kernel ---

    def _one(self, report: Report, target: Target, deadline: float) -> None:
        known = self.database.trials(self.place, target.key)
        evolution = Evolution(target.ranked, [(target.default, 1.0), *known], self.seed)
        best = target.default if target.tuned is None else target.tuned.choice
        if best not in target.ranked:
            best = target.default
        ratio = min((r for choice, r in known if choice == best), default=1.0)
        incumbent = variant(self.planning, target.launch, target.key, best)
        found = False
        while time.perf_counter() < deadline:
            asked = [choice for _ in range(self.workers.width) if (choice := evolution.ask()) is not None]
            if not asked:
                target.done = True
                break
            jobs = [Job(incumbent, self._variant(target, choice), self.device.name, self.seed) for choice in asked]
            for choice, job, measured in zip(asked, jobs, self.workers.measure(jobs), strict=True):
                self._check_place(measured)
                target.trials += 1
                if measured.reason:
                    report.failures.append(f"{target.label}: {measured.reason.splitlines()[0]}")
                relative = min(measured.ratio * ratio, 100.0)
                evolution.tell(choice, relative)
                self.database.record_trial(self.place, target.key, choice, relative)
                if measured.better and relative < ratio:
                    best, ratio, incumbent, found = choice, relative, job.candidate, True
                    self._keep(target, best, target.milliseconds, target.milliseconds * ratio)
            self._show(report, target)
        if found or (target.tuned is None and target.trials):
            self._confirm(target, best, incumbent)

    def _variant(self, target: Target, choice: Choice) -> Any:
        return variant(self.planning, target.launch, target.key, choice)

    def _confirm(self, target: Target, best: Choice, incumbent: Any) -> None:
        """Measure the best choice beside the cost model's once more, and keep it only if it is faster beyond noise:
        many small steps may have added up noise."""
        default = self._variant(target, target.default)
        if best == target.default:
            self._keep(target, best, target.milliseconds, target.milliseconds)
            return
        executors = [runnable(one, self.device, self.seed) for one in (default, incumbent)]
        measured = compare(executors[0], executors[1], self.device)
        if measured.better:
            self._keep(target, best, measured.incumbent_ms, measured.incumbent_ms * measured.ratio)
        else:
            self._keep(target, target.default, measured.incumbent_ms, measured.incumbent_ms)

    def _keep(self, target: Target, choice: Choice, default_ms: float, best_ms: float) -> None:
        target.tuned = Tuned(
            kernel=target.key, label=target.label, choice=choice, default_ms=default_ms, best_ms=best_ms
        )
        self.database.record(self.place, target.tuned)

    def _check_place(self, measured: Measured) -> None:
        from smartmem_rules.tuning.database import TuningError  # start-up time

        if (measured.device, measured.driver) != (self.place.device, self.place.driver):
            raise TuningError(
                f"a worker measured on {measured.device} (driver {measured.driver}), but the kernels are tuned for "
                f"{self.place.device} (driver {self.place.driver}); workers need the same device and driver"
            )

    def _show(self, report: Report, target: Target) -> None:
        best = self._rest
        for one in report.targets:
            gain = 1.0 if one.tuned is None else one.tuned.best_ms / max(one.tuned.default_ms, 1e-9)
            best += one.milliseconds * one.count * gain
        self.progress(min(1.0, (time.perf_counter() - self._start) / self.budget), best, target.label)

    # --- the whole plan ---

    def _compare(self) -> tuple[float, float]:
        """Milliseconds of the plan with the cost model's sizes and with the tuned ones."""
        plans = [finish(self.planning, choices) for choices in (None, self.database.choices(self.place))]
        executors = [Executor(plan, self.device) for plan in plans]
        feeds = random_feeds(input_types(plans[0]), self.seed, plans[0].statistics.model.input_bounds)
        contenders = [
            Contender(name=name, run=partial(executor.run, feeds), kernels=None, device=self.device.name)
            for name, executor in zip(("before", "after"), executors, strict=True)
        ]
        before, after = interleaved(contenders, _RUNS)
        return before["median_ms"], after["median_ms"]


def shape(launch: Launch) -> str:
    """A contraction's extents, for people: batch x rows x reduction x columns; of a chain those of its steps."""
    if not isinstance(launch, Single):
        return f"{launch.form}: " + ", ".join(map(shape, launch.steps))
    kernel = launch.kernel
    c = kernel.contraction
    if c is None:
        rows = " x ".join(str(v.extent) for v in kernel.axes if v.extent > 1)
        return f"{kernel.form} over {rows or 1}"
    sizes = [math.prod(v.extent for v in axes) for axes in (c.batch, c.m, c.k)]
    columns = "+".join(str(n) for n in (c.n.extent, *(part.n.extent for part in kernel.parts)))
    extra = [word for word, there in (("scores", c.scores), ("rows", c.stages), ("finished", kernel.stages)) if there]
    batch = f"{sizes[0]} x " if sizes[0] > 1 else ""
    return " ".join([f"{batch}{sizes[1]} x {sizes[2]} x {columns}", *extra])
