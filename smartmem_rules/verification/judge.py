"""One rule's verdict: which method fits its kind, and what the verdict rests on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.collector import rare_collections
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.instantiate import Definitions
from smartmem_rules.verification import results as r
from smartmem_rules.verification.counterexample import describe, shrink
from smartmem_rules.verification.instances.cases import LARGEST_WANTED, Search
from smartmem_rules.verification.instances.wishes import wishes_of
from smartmem_rules.verification.proof.index_proofs import prove_index_rule
from smartmem_rules.verification.proof.proofs import prove_eliminate, prove_rewrite
from smartmem_rules.verification.results import Counterexample, RuleReport
from smartmem_rules.verification.semantics.terms import term_text
from smartmem_rules.verification.trials.eliminations import test_eliminate
from smartmem_rules.verification.trials.indices import test_index_rule
from smartmem_rules.verification.trials.keeps import test_keep
from smartmem_rules.verification.trials.layouts import test_layouts
from smartmem_rules.verification.trials.outcome import FLOOR, Budget, Outcome
from smartmem_rules.verification.trials.references import test_reference
from smartmem_rules.verification.trials.rewrites import directions, test_rewrite, try_numbers
from smartmem_rules.verification.trials.tables import test_table

Rule = ast.Rewrite | ast.Eliminate | ast.IndexRule | ast.Keep | ast.Operator | ast.Table | ast.Block

SMALLEST_SHARE = 0.01
"""Below this share of satisfied instances a rule counts as vacuous."""

MANY_ELEMENTS = 8192
"""Of a tensor that guards want: rules whose tensors have more are tried less often, in as much less time."""

_REALS = "elements are real numbers; rounding is measured, not judged"
_TYPES = "the engine refuses a match whose sides differ in type"
_NEAR = "a number that a guard compares with `near` is meant as it is written, in single precision"
_SMALL = "ranks up to 6, extents up to 16"
_SMALL_OR_EMPTY = f"{_SMALL}, and 0 where the result has elements all the same"


def judge(
    rule: Rule, base: Definitions, seed: int, budget: Budget, prove: bool = False, files: Sequence[str] = ()
) -> RuleReport:
    """The verdict on one rule.

    Args:
        prove: also try a proof for all values.
        files: the rule files beside the built-in ones, for the counterexample's snippet.
    """
    began = time.process_time()
    instances = Instances(base)
    with rare_collections():
        report = _judged(rule, instances, seed, budget, prove, files)
    return replace(report, seconds=time.process_time() - began)


def _judged(
    rule: Rule, instances: Instances, seed: int, budget: Budget, prove: bool, files: Sequence[str]
) -> RuleReport:
    match rule:
        case ast.Rewrite():
            return _rewrite(rule, instances, seed, budget, prove, files)
        case ast.Eliminate():
            return _eliminate(rule, instances, seed, budget, prove, files)
        case ast.IndexRule():
            return _index(rule, seed, prove, files)
        case ast.Keep():
            return _keep(rule, instances, seed, budget)
        case ast.Operator():
            return _operator(rule, instances, seed, budget, files)
        case ast.Table():
            return _table(rule, instances, seed, budget, files)
        case ast.Block():
            return _layout(rule, seed, budget, files)


def _rewrite(
    rule: ast.Rewrite, instances: Instances, seed: int, budget: Budget, prove: bool, files: Sequence[str]
) -> RuleReport:
    wanted = wishes_of(rule.guards).most_elements
    few = max(FLOOR, budget.trials * MANY_ELEMENTS // wanted) if wanted > MANY_ELEMENTS else budget.trials
    outcome = test_rewrite(rule, instances, seed, replace(budget, trials=min(few, budget.trials)))
    method = "random instances: " + ", ".join(sorted(outcome.domains)) if outcome.domains else "random instances"
    if outcome.special:
        method += ", special values"
    if outcome.empty:
        method += ", empty tensors"
    assumptions = _rewrite_assumptions(rule)
    report = replace(
        _tested(rule, "rewrite", method, assumptions, outcome.trials, outcome.share),
        cases=outcome.cases,
        refused=outcome.refused,
        rounding=outcome.rounding,
    )
    if outcome.failure is not None:
        return _failed(report, _counterexample(rule, outcome, instances, seed, files))
    if outcome.trials < FLOOR or outcome.share < SMALLEST_SHARE:
        return _too_few(report, outcome, wanted)
    if prove:
        try:
            proof = prove_rewrite(rule, instances)
        except TimeoutError:  # what the trials found stands
            return replace(report, reason="not proved: the time of the budget was over")
        if proof.answer == "proved":
            proved = (*assumptions, "the proof is of real numbers; floats and integers beside it were tested")
            return replace(report, verdict=r.PROVED, method=f"{proof.method}; {method}", assumptions=proved)
        found = try_numbers(rule, instances, seed, proof.numbers) if proof.numbers else None
        if found is not None:
            outcome.failure = found
            found_by_z3 = replace(report, method=f"{method}, numbers found by z3")
            return _failed(found_by_z3, _counterexample(rule, outcome, instances, seed, files))
        return replace(report, reason=f"not proved: {proof.reason}")
    return report


def _tested(
    rule: Rule, kind: str, method: str, assumptions: tuple[str, ...], trials: int, satisfied: float | None
) -> RuleReport:
    """The report where all trials agreed and each was of another case.

    Args:
        satisfied: the share of the generated instances that satisfied the guards.
    """
    return RuleReport(
        name=rule.name,
        kind=kind,
        span=rule.span,
        verdict=r.TESTED,
        method=method,
        assumptions=assumptions,
        trials=trials,
        cases=trials,
        satisfied=satisfied,
    )


def _failed(report: RuleReport, counterexample: Counterexample) -> RuleReport:
    return replace(report, verdict=r.FAILED, counterexample=counterexample)


def _wrong(
    report: RuleReport, rule: ast.Table | ast.Block, failure: str, seed: int, budget: Budget, files: Sequence[str]
) -> RuleReport:
    """The report of a rule whose failure one line says."""
    lines = (f"{rule.span}: {rule.name} is wrong", f"  {failure}")
    return _failed(report, Counterexample(failure, lines, _again(rule, seed, budget, files)))


def _too_few(report: RuleReport, outcome: Outcome, wanted: int) -> RuleReport:
    if wanted > LARGEST_WANTED and not outcome.satisfied:
        reason = f"guards want a tensor of {wanted} elements or more, and none of more than {LARGEST_WANTED} is drawn"
        return replace(report, verdict=r.UNKNOWN, reason=reason)
    if outcome.timed_out and outcome.satisfied:
        return replace(report, verdict=r.UNKNOWN, reason=f"the time was over after {outcome.trials} trials")
    reason = f"{outcome.satisfied} of {outcome.generated} instances satisfied the guards"
    if outcome.refused == outcome.satisfied and outcome.satisfied:
        reason += "; the engine refuses all of them, because the sides differ in type"
    return replace(report, verdict=r.VACUOUS, reason=reason)


def _rewrite_assumptions(rule: ast.Rewrite) -> tuple[str, ...]:
    found = [_SMALL_OR_EMPTY, _TYPES]
    if "reassociation" in rule.relaxes:
        found.append(_REALS)
    if any(word != "reassociation" for word in rule.relaxes):
        found.append("outside of the reals only as far as `relaxes` leaves it")
    if any("near" in str(guard) for guard in rule.guards):
        found.append(_NEAR)
    return tuple(found)


def _counterexample(
    rule: ast.Rewrite, outcome: Outcome, instances: Instances, seed: int, files: Sequence[str]
) -> Counterexample:
    assert outcome.failure is not None
    case, difference = outcome.failure
    for left, right in directions(rule):
        search = Search(rule, left, right, instances, seed)
        again = search.build(dict(case.choices))
        if again is not None and again.right is not None and again.left == case.left:
            case, difference = shrink(rule, search, again, difference)
            break
    return describe(rule, case, difference, seed, files)


def _eliminate(
    rule: ast.Eliminate, instances: Instances, seed: int, budget: Budget, prove: bool, files: Sequence[str]
) -> RuleReport:
    outcome = test_eliminate(rule, instances, seed, budget)
    method = "every index of random instances, by the definition"
    if outcome.references:
        method += f" and by ONNX's evaluator ({outcome.references} instances)"
    share = outcome.satisfied / outcome.generated if outcome.generated else 0.0
    assumptions = (_SMALL, "instances that are no views are left alone by the engine")
    tested = _tested(rule, "eliminate", method, assumptions, outcome.trials, share)
    report = replace(tested, refused=outcome.no_view)
    if outcome.failure is not None:
        term, reason = outcome.failure
        operands = ", ".join("_" if o is None else str(o.type) for o in term.operands)
        lines = (
            f"{rule.span}: {rule.name} is wrong (seed {seed})",
            f"  {term_text(term)}",
            f"  on {operands}",
            f"  {reason}",
        )
        again = _again(rule, seed, budget, files)
        return _failed(report, Counterexample(reason, lines, again, {"term": term_text(term)}))
    if outcome.trials < FLOOR:
        return replace(
            report, verdict=r.VACUOUS, reason=f"{outcome.trials} of {outcome.generated} instances were views"
        )
    if prove:
        try:
            proof = prove_eliminate(rule, instances)
        except TimeoutError:
            return replace(report, reason="not proved: the time of the budget was over")
        if proof.answer == "proved":
            return replace(report, verdict=r.PROVED, method=f"z3: {proof.method}; {method}")
        return replace(report, reason=f"not proved: {proof.reason}")
    return report


def _again(
    rule: ast.Eliminate | ast.Operator | ast.Table | ast.Block, seed: int, budget: Budget, files: Sequence[str]
) -> str:
    """Python that finds the same counterexample again."""
    return (
        "import smartmem_rules as sm\n\n"
        f"files = {list(files)!r}\n"
        f"found = sm.verify(files, rule={rule.name!r}, seed={seed}, trials={budget.trials}, jobs=1)\n"
        "(report,) = found.rules\n"
        "print(report.verdict, report.counterexample.summary if report.counterexample else '')\n"
    )


def _index(rule: ast.IndexRule, seed: int, prove: bool, files: Sequence[str]) -> RuleReport:
    outcome = test_index_rule(rule, seed)
    extent = "all" if outcome.exhaustive else "many"
    method = f"{extent} small numbers"
    share = outcome.trials / outcome.generated if outcome.generated else 0.0
    assumptions = ("integers without overflow", "what the left side divides by is positive")
    report = _tested(rule, "index", method, assumptions, outcome.trials, share)
    if outcome.failure is not None:
        return _failed(report, _index_example(rule, outcome.failure, outcome.left, outcome.right, files))
    if not prove:
        return report if outcome.trials >= FLOOR else _vacuous_index(report)
    proof = prove_index_rule(rule)
    if proof.answer == "proved":
        if outcome.trials < FLOOR:
            return _vacuous_index(report)
        return replace(report, verdict=r.PROVED, method=f"z3: all integers; {method}")
    if proof.answer == "refuted" and proof.numbers is not None:
        return _failed(report, _index_example(rule, proof.numbers, None, None, files))
    return replace(report, reason=f"not proved: {proof.reason}")


def _vacuous_index(report: RuleReport) -> RuleReport:
    return replace(report, verdict=r.VACUOUS, reason=f"{report.trials} small numbers satisfy the guards")


def _index_example(
    rule: ast.IndexRule, numbers: dict[str, int], left: int | None, right: int | None, files: Sequence[str]
) -> Counterexample:
    named = ", ".join(f"{n} = {v}" for n, v in sorted(numbers.items()))
    summary = f"{named}: {left} on the left, {'undefined' if right is None else right} on the right"
    if left is None and right is None:
        summary = f"{named}: the sides differ"
    snippet = (
        "from smartmem_rules.rulebase.base import load_rules\n"
        "from smartmem_rules.verification.trials.indices import applies, value\n\n"
        f"files = {list(files)!r}\n"
        f"(rule,) = [r for r in load_rules(files).index_rules if r.name == {rule.name!r}]\n"
        f"names = {numbers!r}\n"
        "print(applies(rule, names), value(rule.left, names), value(rule.right, names))\n"
    )
    return Counterexample(
        summary, (f"{rule.span}: {rule.name} is wrong", f"  {summary}"), snippet, {"numbers": numbers}
    )


def _keep(rule: ast.Keep, instances: Instances, seed: int, budget: Budget) -> RuleReport:
    """A `keep` changes when an operator is computed, never what it gives: what can be wrong is that it never holds."""
    outcome = test_keep(rule, instances, seed, budget)
    share = outcome.trials / outcome.generated if outcome.generated else 0.0
    method = "what it keeps stays the operator of the model"
    report = replace(_tested(rule, "keep", method, (_SMALL,), outcome.trials, share), verdict=r.PROVED)
    if not outcome.trials:
        reason = f"none of {outcome.generated} instances of {rule.operator} satisfied the guards"
        return replace(report, verdict=r.VACUOUS, reason=reason)
    return report


def _operator(rule: ast.Operator, instances: Instances, seed: int, budget: Budget, files: Sequence[str]) -> RuleReport:
    """An operator that names a numpy function: its definition and the function on the same operands."""
    outcome = test_reference(rule, instances, seed, budget)
    method = "the definition and the numpy function that it names, in double precision"
    report = _tested(rule, "operator", method, (_SMALL,), outcome.trials, 1.0)
    if outcome.failure is not None:
        lines = (f"{rule.place('reference')}: {rule.name} is not its reference (seed {seed})", *outcome.failure)
        return _failed(report, Counterexample(outcome.failure[-1].strip(), lines, _again(rule, seed, budget, files)))
    if not outcome.trials:
        return replace(report, verdict=r.VACUOUS, reason="no instance of the operator was found")
    return report


def _table(rule: ast.Table, instances: Instances, seed: int, budget: Budget, files: Sequence[str]) -> RuleReport:
    outcome = test_table(rule, instances, seed, budget)
    method = "the classes' own meaning, and generated pairs fused or eliminated"
    assumptions = (_SMALL, "a class stands for the operators of the rule base that have it")
    share = outcome.trials / outcome.generated if outcome.generated else None
    tested = _tested(rule, "table", method, assumptions, outcome.trials, share)
    report = replace(tested, cases=len(outcome.pairs))
    if outcome.failure is not None:
        return _wrong(report, rule, outcome.failure, seed, budget, files)
    if outcome.untested:
        return replace(report, reason="no pair was found for " + ", ".join(outcome.untested))
    return report


def _layout(rule: ast.Block, seed: int, budget: Budget, files: Sequence[str]) -> RuleReport:
    outcome = test_layouts(rule, seed, budget.trials)
    method = "every element of packed tensors found again where kernels look for it"
    report = _tested(rule, "layout", method, (_SMALL,), outcome.trials, 1.0)
    return report if outcome.failure is None else _wrong(report, rule, outcome.failure, seed, budget, files)
