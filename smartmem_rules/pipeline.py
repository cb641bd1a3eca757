"""The way of a model to its plan: import, saturate, extract, plan and emit."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from smartmem_rules.collector import first_grows_old, no_collections
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import Dims
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.level import Level
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.limits import DEFAULT_LIMITS, Limits
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.model_statistics import input_bounds, model_statistics
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase, load_modules, load_rules
from smartmem_rules.runtime.target import Target, target_of
from smartmem_rules.stages import Stages, Unmeasured
from smartmem_rules.statistics import Extraction, RewriteStatistics
from smartmem_rules.tensor.extents import SymbolicExtentError, dimensions_needed, flags_of

if TYPE_CHECKING:
    from smartmem_rules.egraph.constants import Constants
    from smartmem_rules.egraph.model import Saturation
    from smartmem_rules.exchange.certificates import MadeFor
    from smartmem_rules.plan.build import Planning
    from smartmem_rules.plan.means import PlanOptions
    from smartmem_rules.plan.scheduling import Scheduled


Certify = Callable[[str], None]


class Watcher(Protocol):
    """Looks at what the stages give while it is there: a plan keeps neither the graph nor the expressions.

    Attributes:
        takes_constants: whether it looks at the values of constants, which else go while they are packed.
    """

    takes_constants: bool

    def imported(self, graph: Graph, /) -> None:
        """Look at the imported model."""

    def scheduled(self, scheduled: Scheduled, /) -> None:
        """Look at the scheduled launches."""


@dataclass(frozen=True)
class Request:
    """The arguments of `optimize`."""

    source: Any
    rules: Sequence[str | Path]
    device: str
    level: str
    dtype: str
    memory: str
    disable: Collection[str]
    dims: Dims
    layout: str = "exact"
    limits: Limits = DEFAULT_LIMITS
    probes: bool = False

    @property
    def options(self) -> PlanOptions:
        """What the plan is asked for."""
        from smartmem_rules.plan.means import PlanOptions  # start-up time

        return PlanOptions(level=self.level, dtype=self.dtype, memory=self.memory, layout=self.layout)


@no_collections()
def make_plan(
    request: Request,
    clock: Stages,
    refusals: Refusals | None = None,
    certify: Certify | None = None,
    watch: Watcher | None = None,
) -> tuple[Plan, Target]:
    """The plan of a model and what it is for; the exceptions are those of `api.optimize`.

    Args:
        refusals: takes in why kernels stay apart.
        certify: takes in the text of a certificate of the plan.
        watch: looks at what the stages give.
    """
    imported = _imported(request, clock)
    if watch is not None:
        watch.imported(imported.graph)
    model, target = model_statistics(imported.graph, request.dtype), imported.target
    maker = _Maker(request=request, clock=clock, refusals=refusals, certify=certify, watch=watch)
    given = [imported]
    del imported  # the graph's weights go while they are packed
    plan = maker.plan_of_parts(given.pop()) if given[0].graph.counted else maker.plan(given.pop())
    statistics = replace(plan.statistics, model=model, memory=request.memory, device=target.name)
    name = Path(request.source).stem if isinstance(request.source, (str, Path)) else plan.model
    first_grows_old()
    return replace(plan, model=name, statistics=statistics), target


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """Makes plans of imported graphs; the attributes are the arguments of `make_plan`."""

    request: Request
    clock: Stages
    refusals: Refusals | None
    certify: Certify | None
    watch: Watcher | None

    def plan_of_parts(self, imported: _Imported) -> Plan:
        """The plan of a graph of which a run counts extents: those of its parts as one."""
        from smartmem_rules.graph.counting.parts import parts_of  # start-up time
        from smartmem_rules.plan.linked import linked  # start-up time

        graph, request = imported.graph, self.request
        if request.dtype == "float16" or self.certify is not None or request.probes:
            counts = ", ".join(one.tensor for one in graph.counted[:3])
            what = f"dtype {request.dtype!r}" if request.dtype == "float16" else "probes"
            what = "a certificate" if self.certify is not None else what
            raise PlanError(
                f"there is no plan with {what} for a model whose operators have to know extents that depend on data "
                f"({counts}); leave it out"
            )
        parts = parts_of(graph)
        plans = [self.plan(replace(imported, graph=part.graph)) for part in parts]
        return linked(graph, list(zip(parts, plans, strict=True)))

    def plan(self, imported: _Imported) -> Plan:
        """The plan of a graph that knows all extents, or their ranges."""
        from smartmem_rules.emit.plan import finish  # start-up time
        from smartmem_rules.plan.prepared import prepared  # start-up time

        request, clock, watch = self.request, self.clock, self.watch
        extracted = _extracted(imported, request, clock, record=self.certify is not None)
        graph, base, target = extracted.graph, imported.base, imported.target
        options = request.options
        with _of_ranges():
            if request.dtype == "float16":
                with clock.stage("calibrate"):
                    options = replace(options, wide=_exceeding(graph, base, target, options))
                clock.show("calibrate", lambda: "".join(f"{name} stays float32\n" for name in sorted(options.wide)))
            planning = prepared(graph, base, target.profile, options, clock, self.refusals)
            if self.certify is not None:
                self.certify(_certificate(request, imported, extracted, planning))
            seen = None if watch is None else watch.scheduled
            owned = not (request.probes or (watch is not None and watch.takes_constants))
            rewriting = extracted.rewriting
            if owned:  # the weights go while they are packed
                planning = planning.alone()
                del extracted, graph, imported
            plan = finish(planning, _tuned(target), owned=owned, clock=clock, probes=request.probes, watch=seen)
        wide = tuple(sorted(options.wide))
        return replace(plan, statistics=replace(plan.statistics, rewriting=rewriting, stored_wide=wide))


def _certificate(request: Request, imported: _Imported, extracted: _Extracted, planning: Planning) -> str:
    """The certificate of a plan whose kernels are not scheduled yet."""
    from smartmem_rules.provenance.certificate import certificate_text, made_certificate  # start-up time

    how: MadeFor = {"device": imported.target.name, "level": request.level, "dtype": request.dtype}
    certificate = made_certificate(imported.graph, imported.base, extracted.saturation, planning, how)
    return certificate_text(certificate)


def _exceeding(graph: Graph, base: RuleBase, target: Target, options: PlanOptions) -> set[str]:
    """Tensors whose values halves would not hold: seen in one run in single precision, where there is a device."""
    from smartmem_rules.emit.plan import finish  # start-up time
    from smartmem_rules.plan.build import prepare  # start-up time
    from smartmem_rules.plan.kernel.packing import LARGEST_HALF  # start-up time
    from smartmem_rules.runtime.executor import Executor  # start-up time
    from smartmem_rules.runtime.feeds import random_feeds  # start-up time

    if target.device is None:
        return set()
    planning = prepare(graph, base, target.profile, replace(options, dtype="float32", memory="buffer"))
    executor = Executor(finish(planning, observed=True), target.device)
    margin = base.levels[options.level].half_margin
    found = executor.magnitudes(random_feeds(executor.input_types, bounds=input_bounds(graph)))
    return {name for name, magnitude in found.items() if not magnitude * margin <= LARGEST_HALF}


def make_planning(request: Request) -> tuple[Planning, Target]:
    """The kernels of a model before they are sized, for tuning; the exceptions are those of `api.optimize`."""
    from smartmem_rules.plan.build import prepare  # start-up time

    imported = _imported(request, Unmeasured())
    graph, base, target = imported.graph, imported.base, imported.target
    if graph.counted:
        counts = ", ".join(one.tensor for one in graph.counted[:3])
        raise PlanError(f"tuning measures kernels at one extent, and this model's depend on data ({counts})")
    if graph.dimensions:
        ranges = ", ".join(map(str, graph.dimensions))
        raise PlanError(
            f"tuning measures kernels at one extent, not for ranges ({ranges}); "
            f"give one extent: {flags_of(graph.dimensions)}"
        )
    graph = _extracted(imported, request, Unmeasured()).graph
    with _of_ranges():
        return prepare(graph, base, target.profile, request.options), target


def _tuned(target: Target) -> dict[str, dict[str, int]]:
    """The tuned sizes for a target's device, or for its profile where the device is not here."""
    from smartmem_rules.tuning.database import Place, Tunings  # start-up time

    device = target.device
    name, driver = ("", "") if device is None else (device.name, device.driver)
    return Tunings.of_user().choices(Place(name, driver, target.profile.name))


@dataclass(frozen=True, kw_only=True)
class _Imported:
    """A model's graph, and what it is for."""

    graph: Graph
    base: RuleBase
    level: Level
    target: Target


@dataclass(frozen=True, kw_only=True)
class _Extracted:
    """The cheapest form of a graph, and what the plan is to remember."""

    saturation: Saturation | None
    graph: Graph
    rewriting: RewriteStatistics


def _imported(request: Request, clock: Stages) -> _Imported:
    with clock.stage("import"):
        base = rules_of(request.rules, request.disable)
        level = level_of(request.level, base)
        target = target_of(request.device, base)
        source = request.source
        whole = isinstance(source, Graph)
        graph = source if whole else import_model(source, base, request.dims, limits=request.limits, counts=True)
    clock.show("import", lambda: str(graph))
    return _Imported(graph=graph, base=base, level=level, target=target)


def _extracted(imported: _Imported, request: Request, clock: Stages, record: bool = False) -> _Extracted:
    graph = imported.graph
    if record and graph.dimensions:
        ranges = ", ".join(map(str, graph.dimensions))
        raise PlanError(
            f"a certificate is of one extent, not of ranges ({ranges}); give one extent: {flags_of(graph.dimensions)}"
        )
    chosen, rewriting, saturation = _choose(imported, request, clock, record)
    return _Extracted(saturation=saturation, graph=chosen, rewriting=rewriting)


@contextmanager
def _of_ranges() -> Iterator[None]:
    """Planning, in which nothing may need an open extent as a number."""
    try:
        yield
    except SymbolicExtentError as error:
        needed = sorted(dimensions_needed(error), key=lambda one: one.name)
        flags = f": {flags_of(needed)}" if needed else ""
        raise PlanError(f"there is no plan for this range of extents: {error}; give one extent{flags}") from error


def level_of(name: str, base: RuleBase) -> Level:
    """The `level` block of a name.

    Raises:
        PlanError: there is none.
    """
    if name not in base.levels:
        near = did_you_mean(name, base.levels)
        known = f"the levels are {', '.join(base.levels) or 'none'}"
        raise PlanError(f"there is no level {name!r}; {f'{near} {known}' if near else known}")
    return base.levels[name]


def rules_of(rules: Sequence[str | Path], disable: Collection[str]) -> RuleBase:
    """The shipped rules with more rule files and without those that are left out; kept until a file changes."""
    return _rules(tuple(map(str, rules)), tuple(sorted(disable)))


def _rules(paths: tuple[str, ...], disable: tuple[str, ...]) -> RuleBase:
    from smartmem_rules.resources import rules_path  # start-up time

    try:
        own = [module.span.file for module in load_modules(map(Path, paths))]
    except LanguageError:  # which loading the rules shows
        own = list(paths)
    files = [str(path) for path in rules_path().rglob("*.smr")] + own
    return _loaded(paths, disable, tuple((file, _changed(file)) for file in sorted(files)))


def _changed(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # there is none
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


@lru_cache(maxsize=8)
def _loaded(paths: tuple[str, ...], disable: tuple[str, ...], state: object) -> RuleBase:
    del state  # part of the key: a changed file is loaded again
    return load_rules(paths, disable)


def _choose(
    imported: _Imported, request: Request, clock: Stages, record: bool
) -> tuple[Graph, RewriteStatistics, Saturation | None]:
    """The best form of the graph that the level's rules allow, and the statistics; the graph itself without rules."""
    graph, base, level, target = imported.graph, imported.base, imported.level, imported.target
    if not level.phases:
        return graph, RewriteStatistics(), None
    from smartmem_rules.egraph.attempts import with_reliable_constants  # start-up time
    from smartmem_rules.egraph.saturation import saturate  # start-up time
    from smartmem_rules.extraction.extract import extract  # start-up time
    from smartmem_rules.extraction.printer import report_text, saturation_text  # start-up time
    from smartmem_rules.extraction.rewriting import rewrite_statistics  # start-up time

    def choose(constants: Constants, unreliable: Collection[str]) -> tuple[Saturation, Graph, Extraction]:
        disable = (*request.disable, *unreliable)
        with clock.stage("saturate"):
            saturation = saturate(graph, base, level.phases, disable, record=record, constants=constants)
        with clock.stage("extract"):
            return saturation, *extract(saturation, graph, target.profile)

    saturation, extracted, report = with_reliable_constants(base, choose)
    clock.show("saturate", lambda: saturation_text(saturation))
    clock.show("extract", lambda: f"{report_text(report)}{extracted}")
    return extracted, rewrite_statistics(saturation, graph, extracted, report, base), saturation
