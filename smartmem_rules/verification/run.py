"""Verifies rules: all of the rule base, those of some files, or one by name."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.fixes import advice, any_of, did_you_mean
from smartmem_rules.language.syntax import NOWHERE, Rewrite
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.verdicts import record
from smartmem_rules.verification.judge import Rule, judge
from smartmem_rules.verification.results import UNKNOWN, RuleReport, Verification, kind_of
from smartmem_rules.verification.trials.outcome import TRIALS, Budget

SECONDS = 60.0
"""Of processor time for one rule, at most."""
PATIENCE = 10.0
"""Seconds beyond its budget after which a rule is given up in the midst of an instance."""
SEED = 1

Progress = Callable[[int, int], None]

_state: tuple[RuleBase, int, float, int, bool, tuple[str, ...]] | None = None


def verify(
    files: Sequence[str | Path] = (),
    rule: str | None = None,
    prove: bool = False,
    budget: float = SECONDS,
    seed: int = SEED,
    trials: int = TRIALS,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Judge the rules of some files, or without files all built-in ones.

    Args:
        files: rule files; the built-in rules are loaded with them, but not judged.
        rule: only the rule of this name, or the rules of this family.
        prove: also try proofs by z3.
        budget: seconds of processor time for one rule.
        seed: of all random choices.
        trials: satisfied instances with values that each rule gets.
        jobs: processes; by default one for each of up to eight cores.

    Raises:
        LanguageError: a file has errors, or there is no such rule.
    """
    began = time.perf_counter()
    paths = tuple(str(f) for f in ([files] if isinstance(files, str | Path) else files))
    base = load_rules(paths)
    reports = judge_rules(base, choose(base, paths, rule), prove, budget, seed, trials, jobs, progress, paths)
    record(reports, base)
    return Verification(reports, seed, time.perf_counter() - began)


def judge_rules(
    base: RuleBase,
    chosen: Sequence[int],
    prove: bool = False,
    budget: float = SECONDS,
    seed: int = SEED,
    trials: int = TRIALS,
    jobs: int | None = None,
    progress: Progress | None = None,
    files: tuple[str, ...] = (),
) -> list[RuleReport]:
    """The verdicts on the rules of a rule base at some places in `rules_of`; the rest as for `verify`."""
    state = base, seed, budget, trials, prove, files
    count = min(len(chosen), jobs or min(8, os.cpu_count() or 1))
    return _parallel(state, chosen, count, progress) if count > 1 else _serial(state, chosen, progress)


def rules_of(base: RuleBase) -> list[Rule]:
    """All rules that can be judged, in a fixed order."""
    return [
        *base.rewrites,
        *base.eliminates,
        *base.index_rules,
        *base.keeps,
        *(one for overloads in base.operators.values() for one in overloads if one.reference is not None),
        *base.tables.values(),
        *(layout.block for layout in base.layouts.values()),
    ]


def choose(base: RuleBase, files: Sequence[str], name: str | None) -> list[int]:
    """The places in `rules_of` of the rules that are asked for; rules that are kept as warnings only by name."""
    rules = rules_of(base)
    own = {Path(f).resolve() for f in files}
    chosen = [
        place
        for place, rule in enumerate(rules)
        if (not own or Path(rule.span.file).resolve() in own)
        and (is_called(rule.name, name) if name is not None else not (isinstance(rule, Rewrite) and rule.unsound))
    ]
    if name is not None and not chosen:
        raise unknown_rule(name, rules)
    return chosen


def is_called(name: str, wanted: str) -> bool:
    """Whether a rule has a name, or is one of the family of that name."""
    return name == wanted or name.startswith(f"{wanted}.")


def unknown_rule(name: str, rules: Sequence[Rule]) -> LanguageError:
    """The error where no rule has a name."""
    known = {rule.name for rule in rules}
    fix = advice(did_you_mean(name, known) or f"its rules are {any_of(known)}")
    return LanguageError(
        [Diagnostic(Code.UNKNOWN_RULE, "error", f"there is no rule `{name}` here", NOWHERE, fix=fix)], {}
    )


def _judge_one(place: int) -> RuleReport:
    assert _state is not None
    base, seed, seconds, trials, prove, files = _state
    rule = rules_of(base)[place]
    with _alarm(seconds + PATIENCE):
        try:
            return judge(rule, base, seed, Budget(trials, seconds), prove, files)
        except TimeoutError:
            return _undecided(rule, seconds, f"one instance took longer than the {seconds:.0f} s of the budget")
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as failure:
            # one rule that breaks the evaluator must not take the verdicts on all others with it
            return _undecided(rule, 0.0, f"an instance could not be computed: {type(failure).__name__}: {failure}")


def _undecided(rule: Rule, seconds: float, reason: str) -> RuleReport:
    return RuleReport(
        name=rule.name,
        kind=kind_of(rule),
        span=rule.span,
        verdict=UNKNOWN,
        method="none",
        seconds=seconds,
        reason=reason,
    )


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after some seconds of processor time, where the platform can."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _start(state: tuple[RuleBase, int, float, int, bool, tuple[str, ...]]) -> None:
    global _state
    _state = state


def _start_worker(state: tuple[RuleBase, int, float, int, bool, tuple[str, ...]]) -> None:
    _start(state)
    gc.freeze()  # the rule base stays until the end: no collection has to look at it, nor copies its memory


def _serial(
    state: tuple[RuleBase, int, float, int, bool, tuple[str, ...]], chosen: Sequence[int], progress: Progress | None
) -> list[RuleReport]:
    _start(state)
    reports = []
    for number, place in enumerate(chosen):
        reports.append(_judge_one(place))
        if progress is not None:
            progress(number + 1, len(chosen))
    return reports


def _parallel(
    state: tuple[RuleBase, int, float, int, bool, tuple[str, ...]],
    chosen: Sequence[int],
    count: int,
    progress: Progress | None,
) -> list[RuleReport]:
    _start(state)  # forked workers find it; others get it from the initializer
    method = "fork" if hasattr(os, "fork") else "spawn"
    # rules that take longest begin first, so that no worker ends alone
    order = sorted(chosen, key=lambda place: -_weight(rules_of(state[0])[place]))
    found: dict[int, RuleReport] = {}
    gc.collect()  # an e-graph that nothing holds any more needs threads to end, which forked workers do not have
    with ProcessPoolExecutor(count, get_context(method), initializer=_start_worker, initargs=(state,)) as pool:
        for number, (place, report) in enumerate(zip(order, pool.map(_judge_one, order), strict=True)):
            found[place] = report
            if progress is not None:
                progress(number + 1, len(chosen))
    return [found[place] for place in chosen]


def _weight(rule: Rule) -> int:
    span = rule.span
    table = 100 if not isinstance(rule, Rewrite) and hasattr(rule, "cells") else 0
    return span.end_line - span.line + table
