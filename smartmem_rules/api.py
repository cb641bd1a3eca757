"""The Python interface: optimize a model, run the plan, ask what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from smartmem_rules.runtime.devices import AUTO, Device, DeviceError
from smartmem_rules.runtime.executor import Executor, input_types
from smartmem_rules.runtime.feeds import DEFAULT_SEED, given_extents, random_feeds, trial_extents
from smartmem_rules.runtime.plan_file import is_plan_file, load_plan, save_plan
from smartmem_rules.runtime.reference import (
    TOLERANCES,
    Check,
    NoReferenceError,
    check_outputs,
    open_reference,
    worst_check,
)
from smartmem_rules.runtime.target import device_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smartmem_rules.graph.loading import Dims, ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.plan.model import Kernel, Plan
    from smartmem_rules.runtime.feeds import Array
    from smartmem_rules.runtime.target import Target
    from smartmem_rules.verify.results import Verification

DEFAULT_LEVEL = "smartmem"
DTYPES = tuple(TOLERANCES)
MEMORIES = ("auto", "image", "buffer")
LAYOUTS = ("exact", "local")
STAGES = ("import", "saturate", "extract", "emit", "build")
Progress = Callable[[str, int, int], None]
"""Called with a stage's name, the steps done and the steps to do, first with `(stage, 0, 1)`."""


class PlanOptions(TypedDict, total=False):
    """What `optimize` takes beside the model; its documentation says what each is."""

    rules: Sequence[str | Path]
    device: str
    level: str
    dtype: str
    memory: str
    disable: Collection[str]
    dims: Dims | None
    layout: str


class OptimizedPlan:
    """A plan with the device that runs it."""

    def __init__(
        self, plan: Plan, device: Device | None, model: ModelSource | None = None, debug: bool = False
    ) -> None:
        """Args:
        device: None where the plan is for another computer; it cannot run here then.
        model: what the plan was made of, for `check`.
        debug: the kernels check each read and write of device memory; runs raise `BoundsError`.
        """
        self.plan = plan
        self.device = device
        self.model = model
        self.debug = debug
        self.last_check: Check | None = None
        self._executor: Executor | None = None

    def __repr__(self) -> str:
        return f"<plan of {self.plan.model} for {self.plan.device}: {len(self.kernels)} kernels>"

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels in the order of execution."""
        return self.plan.kernels

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> Executor:
        """The plan with its kernels built and its constants on the device; built at the first call.

        Raises:
            DeviceError: the plan's device is not on this computer.
            BuildError, RunError: the device refuses a kernel or has too little memory.
        """
        if self._executor is None:
            if self.device is None:
                raise DeviceError(f"there is no OpenCL device here to run this plan for {self.plan.device}")
            self._executor = Executor(self.plan, self.device, progress, self.debug)
        return self._executor

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """One inference: an array for each output.

        Raises:
            GraphError: an input is missing, unknown, or of a wrong shape or element type.
            BoundsError: a kernel of a debug build read or wrote outside a tensor.
        """
        return self.prepare().run(feeds)

    def benchmark(self, runs: int = 10, warmup: int = 2, feeds: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Milliseconds of whole inferences: {median_ms, min_ms, max_ms, runs, kernels, device}."""
        return self.prepare().benchmark(runs, warmup, self.random_feeds() if feeds is None else feeds)

    def profile(self, feeds: Mapping[str, Any] | None = None) -> list[tuple[str, float]]:
        """Every kernel's name and milliseconds on the device."""
        return self.prepare().profile(self.random_feeds() if feeds is None else feeds)

    @property
    def dimensions(self) -> dict[str, tuple[int, int]]:
        """The open dimensions for which the plan is made, with their least and greatest extents."""
        return {dimension.name: (dimension.low, dimension.high) for dimension in self.plan.dimensions}

    def random_feeds(
        self,
        seed: int = DEFAULT_SEED,
        dims: Mapping[str, int] | None = None,
        given: Mapping[str, Any] | None = None,
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
        return {**random_feeds(types, seed, self.plan.statistics.get("input_bounds"), extents), **arrays}

    def check(
        self,
        model: ModelSource | None = None,
        seed: int = DEFAULT_SEED,
        tolerance: float | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> Check:
        """Compare the outputs for random inputs with ONNX Runtime's, or with those of ONNX's reference evaluator.

        A plan for ranges of extents is compared at several of them, unless `dims` says at which.

        Args:
            model: the ONNX model; by default what the plan was made of.
            tolerance: for max|a - b| / max|reference|; by default 1e-4 for float32 and 2e-2 for float16.
            dims: extents of the open dimensions.

        Raises:
            NoReferenceError: no reference takes the model.
            ValueError: the plan comes from a file or a Graph, and no model is given.
        """
        source = self.model if model is None else model
        if source is None:
            raise ValueError("this plan does not know its ONNX model; give it: check(model)")
        reference = open_reference(source)
        limit = TOLERANCES[self.plan.dtype] if tolerance is None else tolerance
        checks = []
        for extents in trial_extents(self.plan.dimensions) if dims is None else [dims]:
            feeds = self.random_feeds(seed, extents)
            made = check_outputs(self.run(feeds), reference.run(feeds), reference.name, limit, seed)
            checks.append((extents, made))
        self.last_check = worst_check(checks) if self.plan.dimensions else checks[0][1]
        return self.last_check

    def check_or_reason(self, model: ModelSource | None = None, seed: int = DEFAULT_SEED) -> Check:
        """Like `check`; where no reference takes the model the result says why, and passed is None."""
        try:
            return self.check(model, seed)
        except NoReferenceError as error:
            self.last_check = Check("none", None, None, None, TOLERANCES[self.plan.dtype], seed, {}, str(error))
            return self.last_check

    def explain(self, node: str) -> dict[str, Any]:
        """What became of an ONNX node: {node, operator, outcome, kernels, rules, near_misses}.

        Raises:
            GraphError: the model has no node of this name.
        """
        from smartmem_rules.report import explain

        return explain(self.plan, node, lambda: _file_nodes(self.model))

    def report_data(self) -> dict[str, Any]:
        """What `smartmem optimize --json` prints."""
        from smartmem_rules.report import report_data

        return report_data(self.plan, self.device, self.last_check)

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, from which `load` takes it without optimizing again.

        Raises:
            PlanFileError: the file cannot be written; nothing is left behind then.
        """
        save_plan(self.plan, path)


def load(path: str | Path, device: str = AUTO, debug: bool = False) -> OptimizedPlan:
    """A plan from a file.

    Args:
        device: `auto` is the device that the plan was made for, or else any.
        debug: the kernels check each read and write of device memory.

    Raises:
        PlanFileError: the file is no plan, damaged or of another version.
        DeviceError: there is no such device.
    """
    plan = load_plan(path)
    return OptimizedPlan(plan, device_for(str(plan.statistics.get("device", "")), device), debug=debug)


def optimize(
    graph: ModelSource | Graph,
    rules: Sequence[str | Path] = (),
    device: str = AUTO,
    level: str = DEFAULT_LEVEL,
    dtype: str = "float32",
    memory: str = "auto",
    disable: Collection[str] = (),
    dims: Dims | None = None,
    progress: Progress | None = None,
    layout: str = "exact",
    debug: bool = False,
) -> OptimizedPlan:
    """Make a plan of a model.

    Args:
        graph: a path, the bytes of an ONNX file, a ModelProto, or an imported Graph.
        rules: more rule files; their operators are tried before the built-in ones.
        device: `auto`, a part of a device's name, `PLATFORM:DEVICE` numbers, or the name of a device profile.
        level: which steps are taken: the name of a `level` block.
        dtype: the element type in which floats are stored, float32 or float16.
        memory: `auto` chooses by cost; `image` or `buffer` puts every tensor there if the device can.
        disable: names of rules that are left out.
        dims: extents of the model's symbolic dimensions; (least, greatest) makes a plan for all extents in between.
        layout: `exact` chooses the contiguous axes for the whole graph, `local` edge by edge.
        debug: the kernels check each read and write of device memory against the bounds of its tensor, and runs raise
            `BoundsError`; several times slower. A plan that is saved holds no checks; `load` takes `debug` too.

    Raises:
        GraphError: the model is damaged or uses something that no rule covers.
        LanguageError: a rule file has errors.
        DeviceError: there is no such device.
        PlanError: no kernel can be planned for something.
        BuildError, RunError: the device refuses a kernel or has too little memory.
        ValueError: an argument is none of its choices.
    """
    clock = Clock(progress)
    plan, target = _plan(graph, clock, rules, device, level, dtype, memory, disable, dims, layout)
    optimized = OptimizedPlan(plan, target.device, None if _is_graph(graph) else graph, debug)  # type: ignore[arg-type]
    if target.device is not None:
        with clock.stage("build"):
            optimized.prepare(lambda done, total: clock.step("build", done, total))
    plan.statistics["seconds"] = clock.table()
    return optimized


def explain_model(
    graph: ModelSource | Graph, node: str, progress: Progress | None = None, **options: Unpack[PlanOptions]
) -> dict[str, Any]:
    """What becomes of an ONNX node, without building the kernels; `graph` may also be the path of a saved plan.

    The options are arguments of `optimize`, the result is that of `OptimizedPlan.explain`.
    """
    from smartmem_rules.report import explain

    if isinstance(graph, (str, Path)) and is_plan_file(graph):
        return explain(load_plan(graph), node)
    plan, _ = _plan(graph, Clock(progress), **options)
    return explain(plan, node, lambda: _file_nodes(graph))


def verify(
    files: str | Path | Sequence[str | Path] = (),
    rule: str | None = None,
    prove: bool = False,
    budget: float = 60.0,
    seed: int = 1,
    trials: int = 200,
    jobs: int | None = None,
) -> Verification:
    """Judge rules: proved, tested, failed (with a counterexample), vacuous or unknown.

    Args:
        files: rule files, whose rules are judged together with the built-in ones; by default the built-in rules.
        rule: only the rule of this name.
        prove: also try proofs for all values (needs z3-solver).
        budget: seconds for one rule.
        seed: of all random choices.
        trials: comparisons for each rule.
        jobs: processes; by default one for each of up to eight cores.

    Raises:
        LanguageError: a file has errors, or there is no such rule.
    """
    from smartmem_rules.verify.run import verify as run

    return run([files] if isinstance(files, str | Path) else files, rule, prove, budget, seed, trials, jobs)


def explain_rule_on(
    graph: ModelSource | Graph, rule: str, progress: Progress | None = None, **options: Unpack[PlanOptions]
) -> dict[str, Any]:
    """Where a rule fires on a model and where it nearly does, without building the kernels.

    The options are arguments of `optimize`; `graph` may also be the path of a saved plan.
    """
    from smartmem_rules.report import explain_rule

    if isinstance(graph, (str, Path)) and is_plan_file(graph):
        return explain_rule(load_plan(graph), rule)
    plan, _ = _plan(graph, Clock(progress), **options)
    return explain_rule(plan, rule)


def _plan(
    graph: ModelSource | Graph,
    clock: Clock,
    rules: Sequence[str | Path] = (),
    device: str = AUTO,
    level: str = DEFAULT_LEVEL,
    dtype: str = "float32",
    memory: str = "auto",
    disable: Collection[str] = (),
    dims: Dims | None = None,
    layout: str = "exact",
) -> tuple[Plan, Target]:
    checked = (("dtype", dtype, DTYPES), ("memory", memory, MEMORIES), ("layout", layout, LAYOUTS))
    for name, value, choices in checked:
        if value not in choices:
            raise ValueError(f"{name} {value!r} is none of {', '.join(choices)}")
    with clock.stage("import"):  # the engine's libraries are part of what a user waits for
        from smartmem_rules.pipeline import Request, make_plan

    return make_plan(Request(graph, rules, device, level, dtype, memory, disable, dims or {}, layout), clock)


def _file_nodes(model: ModelSource | Graph | None) -> dict[str, str]:
    """The operators of all nodes of an ONNX model by name, an unnamed node by its first output."""
    if model is None or _is_graph(model):
        return {}
    from smartmem_rules.graph.loading import load_model

    proto, _ = load_model(model)  # type: ignore[arg-type]
    return {node.name or node.output[0]: node.op_type for node in proto.graph.node}


def _is_graph(source: Any) -> bool:
    from smartmem_rules.graph.model import Graph

    return isinstance(source, Graph)


class Clock:
    """Seconds by stage, and the caller's progress display."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._start = time.perf_counter()
        self._seconds = dict.fromkeys(STAGES, 0.0)

    def step(self, stage: str, done: int, total: int) -> None:
        """Pass progress on."""
        if self._progress is not None:
            self._progress(stage, done, total)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        self.step(name, 0, 1)
        start = time.perf_counter()
        yield
        self._seconds[name] += time.perf_counter() - start
        self.step(name, 1, 1)

    def table(self) -> dict[str, float]:
        """Seconds by stage, with `total`: everything, what is between the stages included."""
        return {**self._seconds, "total": time.perf_counter() - self._start}
