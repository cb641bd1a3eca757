"""A plan with the device that runs it, and the way from a model to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np

from smartmem_rules.arguments import (
    ARRAYS,
    CALLED,
    EXTENTS,
    FILE,
    FILES,
    FLAG,
    MODEL,
    SEED,
    check_kinds,
    number,
    takes,
    text,
    whole,
)
from smartmem_rules.collector import return_free_memory
from smartmem_rules.environment import VERIFY
from smartmem_rules.explanation.making import Making, Watch
from smartmem_rules.explanation.model_nodes import file_nodes, is_graph, node_of
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.plan.artefact import Provenance
from smartmem_rules.planned import Found, PlanOptions, kept_or_planned, planned
from smartmem_rules.runtime.devices import Device, DeviceError
from smartmem_rules.runtime.executor import Executor, RunError, input_types
from smartmem_rules.runtime.feeds import DEFAULT_SEED, given_extents, random_feeds, trial_extents
from smartmem_rules.runtime.forks import refuse_in_child
from smartmem_rules.runtime.format.provenance import package_version, provenance_of
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.reference import (
    Check,
    NoReferenceError,
    worst_check,
)
from smartmem_rules.runtime.selftest.report import Report
from smartmem_rules.runtime.selftest.testing import executor_of
from smartmem_rules.stages import Clock as Clock, Progress, Show

if TYPE_CHECKING:
    from smartmem_rules.explanation.documents import NodeExplanation, OptimizeReport
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.plan.kernel.launch import Launch
    from smartmem_rules.report.subject import Subject
    from smartmem_rules.runtime.executor import Latency
    from smartmem_rules.runtime.feeds import Array


class OptimizedPlan:
    """A plan with the device that runs it."""

    def __init__(
        self,
        plan: Plan,
        device: Device | None,
        model: ModelSource | None = None,
        debug: bool = False,
        rules: Sequence[str | Path] = (),
    ) -> None:
        """Args:
        device: None where the plan is for another computer; it cannot run here then.
        model: what the plan was made of, for `check`.
        debug: the kernels check each read and write of device memory; runs raise `BoundsError`.
        rules: the rule files beside the built-in ones, for `check`: what the model's own operators mean.
        """
        self._plan = plan
        self.device = device
        self.model = model
        self.debug = debug
        self.rules = tuple(rules)
        self.last_check: Check | None = None
        self.self_test: Report | None = None
        self.making = Making()
        self._executor: Executor | None = None
        self._preparing = threading.Lock()

    def __repr__(self) -> str:
        return f"<plan of {self.plan.model} for {self.plan.device}: {len(self.kernels)} kernels>"

    @property
    def plan(self) -> Plan:
        """The kernels, layouts and memory that were planned."""
        return self._plan

    @property
    def kernels(self) -> list[Launch]:
        """The launches in the order of execution, a kernel or several each: name, form, origin, bytes and more."""
        return list(self.plan.launches)

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> Executor:
        """The plan with its kernels built and its constants on the device; built at the first call.

        A plan that was made with `probes` has them answered by its kernels then, if they have not been yet on this
        device with this driver (`self_test`); kernels that the device computes wrongly are replaced, with a warning.

        Raises:
            DeviceError: the plan's device is not on this computer.
            WrongKernelError: the device computes a kernel wrongly that nothing replaces.
            BuildError, RunError: the device refuses a kernel or has too little memory.
        """
        if progress is not None:
            check_kinds({"progress": progress}, {"progress": CALLED})
        refuse_in_child(RunError)  # before the lock, which another thread may have held when the process was forked
        with self._preparing:
            if self._executor is None:
                if self.device is None:
                    raise DeviceError(f"there is no OpenCL device here to run this plan for {self.plan.device}")
                tested = executor_of(self.plan, self.device, progress, self.debug)
                self._executor, self.self_test = tested.executor, tested.report
            return self._executor

    def run(self, feeds: Mapping[str, object], trace: str | Path | None = None) -> dict[str, Array]:
        """One inference: an array for each output. Several threads may call this at once.

        Args:
            trace: a file for the times of launches, host and planning (docs/traces.md); a warm-up run goes before.

        Raises:
            TraceFileError: the file cannot be written.
            GraphError: an input is missing, unknown, or of a wrong shape or element type.
            RunError: the device refuses a kernel, or this process is a fork of the one that opened the device.
            BoundsError: a kernel of a debug build read or wrote outside a tensor.
        """
        if type(feeds) is not dict or trace is not None:  # else it takes longer to ask than small plans run
            check_kinds({"feeds": feeds, "trace": trace}, {"feeds": ARRAYS, "trace": FILE.or_none()})
        executor = self.prepare()
        if trace is None:
            return executor.run(feeds)
        from smartmem_rules.explanation.trace import traced_run  # start-up time

        return traced_run(executor, self.making, feeds, trace)

    @takes(feeds=ARRAYS)
    def pinned(self, feeds: Mapping[str, object]) -> dict[str, Array]:
        """Copies of inputs in memory of the host from which the device copies by itself, which saves runs a copy.

        They may be written anew between runs. Raises what `run` does.
        """
        return self.prepare().pinned(feeds)

    @takes(runs=whole(1), warmup=whole(0), feeds=ARRAYS.or_none())
    def benchmark(self, runs: int = 10, warmup: int = 2, feeds: Mapping[str, object] | None = None) -> Latency:
        """Milliseconds of whole inferences: {median_ms, min_ms, max_ms, runs, kernels, device}."""
        return self.prepare().benchmark(runs, warmup, self.random_feeds() if feeds is None else feeds)

    @takes(feeds=ARRAYS.or_none())
    def profile(self, feeds: Mapping[str, object] | None = None) -> list[tuple[str, float]]:
        """Every kernel's name and milliseconds on the device."""
        return self.prepare().profile(self.random_feeds() if feeds is None else feeds)

    @property
    def dimensions(self) -> dict[str, tuple[int, int]]:
        """The open dimensions for which the plan is made, with their least and greatest extents."""
        return {dimension.name: (dimension.low, dimension.high) for dimension in self.plan.dimensions}

    @takes(seed=SEED, dims=EXTENTS.or_none(), given=ARRAYS.or_none())
    def random_feeds(
        self,
        seed: int = DEFAULT_SEED,
        dims: Mapping[str, int] | None = None,
        given: Mapping[str, object] | None = None,
    ) -> dict[str, Array]:
        """Random inputs; integers that index something stay within it.

        Args:
            dims: extents of the open dimensions; by default those of the given inputs, else the greatest.
            given: inputs that are not drawn.

        Raises:
            GraphError: an extent is outside the range for which the plan is made.
        """
        types = input_types(self.plan)
        arrays = {name: np.asarray(array) for name, array in (given or {}).items()}
        extents = {**given_extents(types, arrays), **(dims or {})}
        return {**random_feeds(types, seed, self.plan.statistics.model.input_bounds, extents), **arrays}

    @takes(
        model=MODEL.or_none(),
        seed=SEED,
        tolerance=number("a number from 0 on", lambda value: value >= 0).or_none(),
        dims=EXTENTS.or_none(),
        rules=FILES.or_none(),
    )
    def check(
        self,
        model: ModelSource | None = None,
        seed: int = DEFAULT_SEED,
        tolerance: float | None = None,
        dims: Mapping[str, int] | None = None,
        rules: Sequence[str | Path] | None = None,
    ) -> Check:
        """Compare the outputs for random inputs with the model computed in double precision; see `checking`.

        A plan for ranges of extents is compared at several of them, unless `dims` says at which.

        Args:
            model: the ONNX model; by default what the plan was made of.
            tolerance: for max|a - b| / max|reference|; by default the bound of each element is what perturbed runs of
                the model show that rounding can do to it.
            dims: extents of the open dimensions.
            rules: files that define operators of the model which no other system knows; by default those that the
                plan was made with. Such an operator is computed by the numpy function that its definition names,
                which is imported for that, else by the definition, interpreted in double precision.

        Raises:
            NoReferenceError: no reference takes the model.
            OwnReferenceError: the numpy function that a rule file names for an operator cannot be called.
            ValueError: the plan comes from a file or a Graph, and no model is given.
        """
        source = self.model if model is None else model
        if source is None:
            raise ValueError("this plan does not know its ONNX model; give it: check(model)")
        if RUN_NUMBER in self.plan.inputs:
            raise NoReferenceError("the model draws random numbers, which no other system draws alike")
        from smartmem_rules.checking.compare import Comparer, as_check  # start-up time
        from smartmem_rules.rulebase.base import load_rules  # start-up time

        files = self.rules if rules is None else rules
        comparer = Comparer(source, load_rules(files) if files else None)
        checks = []
        for extents in trial_extents(self.plan.dimensions) if dims is None else [dims]:
            feeds = self.random_feeds(seed, extents)
            verdict = comparer.compare(feeds, self.run(feeds), self.plan.dtype, seed)
            checks.append((extents, as_check(verdict, tolerance)))
        self.last_check = worst_check(checks) if self.plan.dimensions else checks[0][1]
        return self.last_check

    def check_or_reason(self, model: ModelSource | None = None, seed: int = DEFAULT_SEED) -> Check:
        """Like `check`; where no reference takes the model the result says why, and passed is None."""
        try:
            return self.check(model, seed)
        except NoReferenceError as error:
            self.last_check = Check("none", None, None, None, None, seed, {}, str(error))
            return self.last_check

    @takes(node=text("the name of a node"))
    def explain(self, node: str) -> NodeExplanation:
        """What became of an ONNX node: {node, operator, outcome, kernels, rules, near_misses}.

        Raises:
            GraphError: the model has no node of this name.
        """
        from smartmem_rules.explanation.report import explain  # start-up time

        meant = node if self.model is None else node_of(self.model, node)
        return explain(self.plan, meant, lambda: file_nodes(self.model))

    def report_data(self) -> OptimizeReport:
        """What `smartmem optimize --json` prints."""
        from smartmem_rules.explanation.report import report_data  # start-up time

        return report_data(self.plan, self.device, self.last_check)

    @takes(path=FILE, measures=FLAG)
    def report(self, path: str | Path, measures: bool = True) -> None:
        """Write a page that explains the plan and needs no server (docs/report.md).

        `smartmem report` compares levels and another plan besides.

        Args:
            measures: times are taken, where the plan's device is here.

        Raises:
            ReportFileError: the file cannot be written.
            BuildError, RunError: with `measures`, as `run` does.
        """
        from smartmem_rules.report.data import report  # start-up time
        from smartmem_rules.report.writing import write_report  # start-up time

        write_report(report(self.subject(measures)), path)

    def subject(self, measures: bool, stages: Mapping[str, str] | None = None) -> Subject:
        """The plan with what reports show of it.

        Args:
            stages: the texts of the stages that led to it, as far as they were kept.
        """
        from smartmem_rules.pipeline import rules_of  # start-up time
        from smartmem_rules.report.subject import Subject, measure, verdicts_on  # start-up time

        return Subject(
            plan=self.plan,
            device=self.device,
            check=self.last_check,
            making=self.making,
            file=file_nodes(self.model),
            stages=stages or {},
            verdicts=verdicts_on(rules_of(self.rules, ())),
            measured=measure(self.prepare(), self.random_feeds()) if measures and self.device is not None else None,
        )

    @takes(path=FILE, binaries=FLAG)
    def save(self, path: str | Path, binaries: bool = False) -> None:
        """Write the plan to a file, from which `load` takes it without optimizing again.

        Args:
            binaries: with its programs as this device's driver compiles them, which the same device and driver take.

        Raises:
            PlanFileError: the file cannot be written; nothing is left behind then.
            BuildError, RunError: with `binaries`, as `run` does.
        """
        plan = replace(self.plan, binaries=self.prepare().binaries()) if binaries else self.plan
        if plan.provenance.version and not plan.provenance.rules:
            plan = replace(plan, provenance=provenance_of(self.model, self.rules))
        save_plan(plan, path)


def optimize_now(
    graph: ModelSource | Graph,
    progress: Progress | None = None,
    debug: bool = False,
    show: Show | None = None,
    certificate: str | Path | None = None,
    anew: bool = False,
    **options: Unpack[PlanOptions],
) -> OptimizedPlan:
    """Like `optimize`, but a model whose inputs decide shapes by their values is refused.

    Raises:
        UnknownValuesError: values of inputs decide shapes, in addition to what `optimize` raises.
    """
    clock = Clock(progress, show)
    watch = Watch()
    if anew or debug or show is not None or certificate is not None:  # they need each stage's results
        with VERIFY.set_to("full") if debug else nullcontext():
            plan, target = planned(graph, clock, certificate=certificate, watch=watch, **options)
        found = Found(plan=plan, device=target.device, target=target)
    else:
        found = kept_or_planned(graph, clock, watch=watch, **options)
    plan, device, keep = found.plan, found.device, found.keep
    if found.target is not None:
        from smartmem_rules.room.plans import refuse_too_large  # start-up time

        refuse_too_large(plan, found.target, graph, options)
    source = None if is_graph(graph) else graph
    plan = replace(plan, provenance=Provenance(version=package_version()))  # the rest takes longer: when it is saved
    optimized = OptimizedPlan(plan, device, source, debug, options.get("rules", ()))  # type: ignore[arg-type]
    if device is not None:
        # the compiler leaves a thread room to write the plan
        with clock.stage("build"), ThreadPoolExecutor(1) as beside:
            kept = beside.submit(keep)
            optimized.prepare(lambda done, total: clock.step("build", done, total))
            kept.result()
        device_name = device.name
        clock.show("build", lambda: f"{len({source.text for source in plan.sources})} programs for {device_name}\n")
    else:
        keep()
    if not plan.statistics.from_cache:
        return_free_memory()
    optimized._plan = replace(plan, statistics=replace(plan.statistics, seconds=clock.table()))
    optimized.making = watch.making(clock.spans)
    return optimized
