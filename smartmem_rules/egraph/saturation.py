"""Runs the rules of a rule base on a graph until nothing new comes or a bound is reached."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from smartmem_rules.egraph.bindings import bindings
from smartmem_rules.egraph.compiler import BETWEEN_RULES, Rules, compile_rules, step_of
from smartmem_rules.egraph.constants import Constants
from smartmem_rules.egraph.encode import encode, write_tables
from smartmem_rules.egraph.host import Host, ask
from smartmem_rules.egraph.index_rules import Improver
from smartmem_rules.egraph.joint import Dependence
from smartmem_rules.egraph.model import PhaseRun, RuleStatistics, Saturation
from smartmem_rules.egraph.serialize import serialize
from smartmem_rules.graph.model import Graph
from smartmem_rules.language.blocks.strategy import Phase, one_by_one
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances

ITERATION_ENODES_FACTOR = 16
"""An iteration that leaves more than this many e-nodes for each one imported (and MINIMUM_ENODES) ends its ruleset."""
MINIMUM_ENODES = 20_000
ITERATION_SECONDS = 10.0
ITERATIONS = 50


class EngineError(Exception):
    """The engine failed on a rule; a bug of the engine or a rule that passed the checks wrongly."""


@dataclass
class Bounds:
    """What ends a phase early, looked at after every round; limits of the phase itself take their place.

    Attributes:
        enodes: rows of the e-graph.
        seconds: of one round.
        iterations: rounds.
    """

    enodes: int
    seconds: float = ITERATION_SECONDS
    iterations: int = ITERATIONS


def saturate(
    graph: Graph,
    base: Rules,
    rulesets: Sequence[str | Phase],
    disable: Collection[str] = (),
    bounds: Bounds | None = None,
    record: bool = False,
    constants: Constants | None = None,
) -> Saturation:
    """All forms of a graph that the rules allow.

    Args:
        graph: an imported model.
        base: the rule base.
        rulesets: run in this order, each until it gives nothing new or reaches a bound; one may stand twice, and
            several may be one phase.
        disable: names of rules that are left out.
        bounds: by default, linear in the size of the graph.
        record: keep every match that was rewritten, for a certificate.
        constants: those of an earlier saturation of the graph, with what is known of them.

    Raises:
        EngineError: egglog refused or broke on a rule.
        IndexRuleError: an index rule uses what interval arithmetic cannot decide.
    """
    started = time.perf_counter()
    phases = one_by_one(rulesets)
    # what the importer instantiated is what it is
    known = graph.instances
    host = Host(
        base=base,
        instances=Instances(base) if known is None or known.base is not base else known,
        constants=Constants() if constants is None else constants,
    )
    with (
        host,
        TemporaryDirectory(prefix="smartmem-") as folder,
        closing(Improver(base, disable)) as improver,
        closing(_Engine(Path(folder), host)) as engine,
    ):
        encoding = encode(graph, host)
        host.improve = improver.improve
        program = compile_rules(base, host, encoding.shapes, phases, disable, record)
        engine.run(program.declarations())
        engine.run(f'(set (host) (py-object "{_pickled()}"))')
        if program.joint:
            host.needs = Dependence(graph).needs
            encoding.note_joint(graph, program.joint)
        engine.run(write_tables(encoding, Path(folder)))
        for rule in program.rules:
            # one at a time: every span of a parsed text keeps a copy of the whole text
            engine.run(rule)
        if bounds is None:
            bounds = Bounds(max(MINIMUM_ENODES, ITERATION_ENODES_FACTOR * encoding.count))
        ran = [engine.run_phase(phase, bounds) for phase in phases]
        classes, tensor_class, firings = serialize(engine.egraph, host, encoding, program)
    return Saturation(
        classes=classes,
        tensor_class=tensor_class,
        statistics=host.statistics,
        near_misses=host.near_misses,
        constants=host.constants,
        instances=host.instances,
        stopped="; ".join(f"{one.phase}: {one.stopped}" for one in ran if one.stopped) or None,
        seconds=time.perf_counter() - started,
        iterations=engine.iterations,
        firings=firings,
        phases=ran,
    )


def _stop(phase: Phase, bounds: Bounds, enodes: int, of_round: float, of_phase: float) -> str | None:
    """The limit that was reached, in words."""
    most = phase.enodes or bounds.enodes
    if enodes > most:
        return f"{enodes} rows, more than {most}"
    if phase.seconds is not None:
        return f"{of_phase:.1f} s, more than {phase.seconds:g}" if of_phase > phase.seconds else None
    return f"an iteration of {of_round:.1f} s" if of_round > bounds.seconds else None


def _pickled() -> str:
    # a function is pickled by reference, so that egglog calls the one with the live state
    return base64.standard_b64encode(pickle.dumps(ask)).decode()


class _Engine:
    """An egglog instance whose failures come out as EngineError."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.egraph = bindings.EGraph(fact_directory=folder)
        self.host = host
        self.iterations = 0

    def close(self) -> None:
        """Give the e-graph back: it may only be dropped by the thread that made it."""
        del self.egraph

    def run(self, text: str) -> list[object]:
        try:
            return list(self.egraph.run_program(*self.egraph.parse_program(text)))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as failure:  # a Rust panic is no Exception
            raise EngineError(f"egglog refused a program: {str(failure).splitlines()[0]}") from None
        finally:
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self.host.failure is not None:
            failure, self.host.failure = self.host.failure, None
            raise EngineError(f"a rule could not be judged: {failure!r}") from failure

    def run_phase(self, phase: Phase, bounds: Bounds) -> PhaseRun:
        """Run the rule sets of a phase together until they give nothing new, or a limit is reached."""
        began, rounds, most, stopped = time.perf_counter(), 0, phase.rounds or bounds.iterations, None
        while True:
            rounds += 1
            started = time.perf_counter()
            enodes, updated = self._round(phase)
            if not updated:
                break
            ended = time.perf_counter()
            stopped = _stop(phase, bounds, enodes, ended - started, ended - began)
            if stopped is None and rounds == most:
                stopped = f"{rounds} {'rounds' if phase.rounds else 'iterations'}"
            if stopped is not None:
                break
        return PhaseRun(phase=phase, rounds=rounds, enodes=enodes, seconds=time.perf_counter() - began, stopped=stopped)

    def _round(self, phase: Phase) -> tuple[int, bool]:
        """Apply the rules once; gives the rows of the e-graph, and whether something is new."""
        outputs = self.run(f"(run-schedule (run {step_of(phase)}))\n(print-size)")
        self.iterations += 1
        enodes, updated = 0, False
        for output in outputs:
            if isinstance(output, bindings.RunScheduleOutput):
                updated = output.report.updated
                self._count(output.report)
            elif isinstance(output, bindings.PrintAllFunctionsSize):
                enodes = sum(size for name, size in output.sizes if not name.startswith(("load_", "by_")))
        return enodes, updated

    def _count(self, report: bindings.RunReport) -> None:
        for name, matches in report.num_matches_per_rule.items():
            for statistics in self._statistics(name):
                statistics.fired += matches
        for name, spent in report.search_and_apply_time_per_rule.items():
            for statistics in (together := self._statistics(name)):
                statistics.milliseconds += spent.total_seconds() * 1000 / len(together)

    def _statistics(self, rule: str) -> list[RuleStatistics]:
        """Those of the rules whose equations an egglog rule makes; none for the engine's own."""
        known = self.host.statistics
        return [known[name] for name in rule.split("#")[0].split(BETWEEN_RULES) if name in known]
