"""Measures the verifier: how many planted errors it finds."""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.instantiate import Definitions
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.judge import judge
from smartmem_rules.verification.mutation.mutate import Mutant, mutants_of
from smartmem_rules.verification.operators import single
from smartmem_rules.verification.results import FAILED, VACUOUS, kind_of
from smartmem_rules.verification.run import _alarm, is_called, rules_of, unknown_rule
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.evaluate import evaluate
from smartmem_rules.verification.semantics.expressions import expression
from smartmem_rules.verification.semantics.terms import Application, apply_operator
from smartmem_rules.verification.trials.eliminations import positions
from smartmem_rules.verification.trials.outcome import Budget

SECONDS = 8.0
FEW, MANY = 48, 240
"""Trials at which nearly all errors show, and trials that a mutant must pass to survive."""
HOPELESS = 40
CASES = 40


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of one mutant.

    Attributes:
        outcome: caught, survived, equivalent (a true rule: proved, or equal wherever only it applies), or discarded (it
            accepts nothing that the rule refuses, or the engine refuses it where it would be wrong).
    """

    rule: str
    change: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0
    kind: str = "rewrite"


@dataclass(frozen=True)
class MutantReport:
    """How many mutants were caught; those that are no wrong rules are counted apart."""

    fates: Sequence[Fate] = field(default_factory=tuple)
    seconds: float = 0.0

    @property
    def caught(self) -> int:
        """Mutants that were found wrong or vacuous."""
        return sum(f.outcome == "caught" for f in self.fates)

    @property
    def survivors(self) -> list[Fate]:
        """Mutants that passed as rules."""
        return [f for f in self.fates if f.outcome == "survived"]

    @property
    def total(self) -> int:
        """Mutants that may be wrong rules."""
        return self.caught + len(self.survivors)

    @property
    def equivalent(self) -> int:
        """Mutants that are true rules."""
        return sum(f.outcome == "equivalent" for f in self.fates)

    @property
    def discarded(self) -> int:
        """Mutants that never apply where they would be wrong."""
        return sum(f.outcome == "discarded" for f in self.fates)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """For each kind of rule the mutants that were caught, and all that may be wrong rules."""
        found: dict[str, tuple[int, int]] = {}
        for fate in self.fates:
            if fate.outcome in ("caught", "survived"):
                caught, total = found.get(fate.kind, (0, 0))
                found[fate.kind] = caught + (fate.outcome == "caught"), total + 1
        return found

    def data(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "total": self.total,
            "caught": self.caught,
            "kinds": {kind: {"caught": c, "total": t} for kind, (c, t) in self.by_kind().items()},
            "survivors": [{"rule": f.rule, "change": f.change, "reason": f.reason} for f in self.survivors],
            "equivalent": [
                {"rule": f.rule, "change": f.change, "reason": f.reason}
                for f in self.fates
                if f.outcome == "equivalent"
            ],
            "discarded": [
                {"rule": f.rule, "change": f.change, "reason": f.reason} for f in self.fates if f.outcome == "discarded"
            ],
            "seconds": round(self.seconds, 2),
        }


_state: tuple[RuleBase, list[Mutant], int] | None = None


def measure(
    files: Sequence[str | Path] = (),
    rule: str | None = None,
    seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MutantReport:
    """Plant errors in the rules of some files, or in all, and verify each.

    Args:
        rule: only the rule of this name, or the rules of this family.

    Raises:
        LanguageError: a file has errors, or there is no such rule.
    """
    global _state
    began = time.perf_counter()
    base = load_rules(files)
    own = {Path(f).resolve() for f in files}
    mutants = [
        m
        for m in mutants_of(base)
        if (rule is None or is_called(m.name, rule)) and (not own or Path(m.rule.span.file).resolve() in own)
    ]
    if rule is not None and not mutants and not any(is_called(one.name, rule) for one in rules_of(base)):
        raise unknown_rule(rule, rules_of(base))
    _state = base, mutants, seed
    fates: list[Fate] = []
    count = max(1, min(len(mutants), jobs or min(8, os.cpu_count() or 1)))
    gc.collect()  # an e-graph that nothing holds any more needs threads to end, which forked workers do not have
    with ProcessPoolExecutor(count, get_context("fork" if hasattr(os, "fork") else "spawn"),
                             initializer=_start, initargs=(_state,)) as pool:  # fmt: skip
        for number, fate in enumerate(pool.map(_judge_one, range(len(mutants)), chunksize=4)):
            fates.append(fate)
            if progress is not None:
                progress(number + 1, len(mutants))
    return MutantReport(fates, time.perf_counter() - began)


def _start(state: tuple[RuleBase, list[Mutant], int]) -> None:
    global _state
    _state = state


def _judge_one(place: int) -> Fate:
    assert _state is not None
    base, mutants, seed = _state
    return judge_mutant(mutants[place], base, seed)


def judge_mutant(mutant: Mutant, base: RuleBase, seed: int) -> Fate:
    """What becomes of one mutant within its seconds."""
    began = time.process_time()
    try:
        with _alarm(3 * SECONDS):
            outcome, reason = fate_of(mutant, base, seed)
    except TimeoutError:
        outcome, reason = "survived", "the time was over"
    except (ValueError, IndexError, ZeroDivisionError, OverflowError) as failure:
        # a definition that no longer computes anything is found by whoever loads it
        outcome, reason = "caught", str(failure)
    return Fate(
        rule=mutant.name,
        change=mutant.change,
        outcome=outcome,
        reason=reason,
        seconds=time.process_time() - began,
        kind=kind_of(mutant.rule),
    )


@dataclass
class _Changed:
    """A rule base with one operator changed."""

    operators: Mapping[str, Sequence[ast.Operator]]
    functions: Mapping[str, ast.Function]


def fate_of(mutant: Mutant, base: RuleBase, seed: int) -> tuple[str, str]:
    """Whether a mutant is caught, and if not why."""
    fate = "survived", ""
    for trials in (FEW, MANY):
        fate = _fate(mutant, base, seed, trials)
        if fate[0] != "survived":
            return fate
    return fate if mutant.targeted is not None else _with_refusals(mutant, base, seed, fate)


def _fate(mutant: Mutant, base: RuleBase, seed: int, trials: int) -> tuple[str, str]:
    rule, definitions = mutant.rule, _definitions(mutant, base)
    if isinstance(rule, ast.Rewrite) and mutant.targeted is not None:
        # only what the guard kept out can tell the mutant from the rule
        refused = ast.Unary(mutant.targeted.span, "not", mutant.targeted)
        targeted = replace(rule, guards=(*rule.guards, refused))
        report = judge(targeted, definitions, seed, Budget(trials, SECONDS / 2, HOPELESS))
        if report.verdict == FAILED:
            return "caught", ""
        if report.trials == 0:
            return "discarded", "the rest of the rule and the types of both sides imply it"
        equal = f"both sides are equal at all {report.trials} instances that only the mutant takes"
        return ("survived" if trials < MANY else "equivalent"), f"{equal}: it says where the rule pays"
    prove = isinstance(rule, ast.IndexRule)
    report = judge(rule, definitions, seed, Budget(trials, SECONDS, HOPELESS), prove=prove)
    if report.verdict in (FAILED, VACUOUS):
        return "caught", ""
    if report.verdict == "proved":
        return "equivalent", "proved by z3: a true rule"
    return "survived", f"equal at {report.trials} instances"


def _with_refusals(mutant: Mutant, base: RuleBase, seed: int, fate: tuple[str, str]) -> tuple[str, str]:
    """A survivor whose change the engine itself turns down wherever it would show is no wrong rule."""
    rule = mutant.rule
    if mutant.operator is not None:
        return _with_refused_instances(mutant, base, seed, fate)
    if not isinstance(rule, ast.Rewrite):
        return fate
    original = next(r for r in base.rewrites if r.name == mutant.name)
    instances = Instances(base)
    search = Search(original, original.left, original.right, instances, seed)
    changed = Search(rule, rule.left, rule.right, instances, seed)
    refused = same = 0
    for case in itertools.islice(search.cases(CASES), CASES):
        other = None if case is None else changed.build(dict(case.choices))
        if case is None or other is None or not other.satisfied:
            continue
        refused += other.right is None
        if case.right is not None and other.right is not None:
            first = expression(case.right)
            if first is None or first != expression(other.right):
                same = -CASES
            same += 1
    if refused:
        return "discarded", f"{fate[1]}; at {refused} others the engine refuses it, because the sides differ in type"
    if same > 0 and mutant.change.startswith("right side"):
        return "equivalent", f"{fate[1]}; the right side is the same expression as the rule's at {same} others"
    return fate


def _with_refused_instances(mutant: Mutant, base: RuleBase, seed: int, fate: tuple[str, str]) -> tuple[str, str]:
    """A changed definition that computes the same or nothing at instances of the unchanged one is no wrong view."""
    assert mutant.operator is not None
    old, new = mutant.operator
    changed = Instances(_definitions(mutant, base))
    refused = same = 0
    for case in itertools.islice(single(old, Instances(base), seed, strict=False).cases(MANY), MANY):
        if case is None or not isinstance(case.left, Application) or case.left.instance.operator is not old:
            continue
        try:
            term = apply_operator(
                old.name, list(case.left.operands), case.left.attributes, case.left.outputs, 0, changed
            )
        except (Unsupported, DefinitionError):
            refused += 1
            continue
        if term.instance.operator is new and not _same_elements(term, case.left):
            return fate
        refused += term.instance.operator is not new
        same += term.instance.operator is new
    if refused:
        return "discarded", f"at {refused} instances the changed definition does not apply, at {same} it is the same"
    return "equivalent", f"the same elements at all {same} instances"


def _same_elements(one: Application, other: Application) -> bool:
    """Whether two views of the same operands give the same elements."""
    if one.instance.equations == other.instance.equations:
        return True
    named = {operand_name(i): (positions(o.type),) for i, o in enumerate(one.operands) if o is not None}
    try:
        first, second = (evaluate(t.instance.equations, named, Domain()) for t in (one, other))
    except (IndexError, ValueError):
        return False
    names = [output_name(place) for place in range(len(other.instance.outputs))]
    return all(np.array_equal(first[name][0], second[name][0]) for name in names)


def _definitions(mutant: Mutant, base: RuleBase) -> Definitions:
    if mutant.operator is None:
        return base
    old, new = mutant.operator
    overloads = [new if o is old else o for o in base.operators[old.name]]
    return _Changed({**base.operators, old.name: overloads}, base.functions)
