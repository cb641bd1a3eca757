"""The rules that may simplify a model: those that verification found right, and that relax no more than is allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.blocks.export import Export
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.verdicts import QUICK, VERDICTS, WITH_PROOFS, record, recorded, shipped, shown
from smartmem_rules.verification.results import PROVED, TESTED

_Rule = ast.Rewrite | ast.Eliminate | ast.IndexRule
_SECONDS = 3.0
_TRIALS = 60
"""For a rule without a verdict: `smartmem verify --prove` says more of it, and that is kept."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A rule base of which every rule is verified.

    Attributes:
        base: without the rules that are not.
        verdicts: what verification says of each rule that is left, such as `proved (z3)`.
        refused: the rules that are left out, each with the reason.
    """

    base: RuleBase
    verdicts: Mapping[str, str]
    refused: Mapping[str, str]


def verified(base: RuleBase, export: Export) -> Verified:
    """The rule base with verified rules only; rules without a verdict, such as a user's own, are verified now.

    The verdicts of the built-in rules are kept beside them (`rules/verdicts.json`), those of others in the cache.
    """
    known = _verdicts(base)
    refused = {}
    for rule in _candidates(base):
        reason = _refusal(rule, known.get(rule.name, "unknown"), export.relaxes)
        if reason:
            refused[rule.name] = reason
    left = _without(base, refused)
    names = {rule.name for rule in _candidates(left)}
    return Verified(base=left, verdicts={n: v for n, v in known.items() if n in names}, refused=refused)


def exact(given: Verified) -> Verified:
    """The rules that keep every bit of every result."""
    relaxing = {rule.name: "it relaxes " + ", ".join(rule.relaxes) for rule in given.base.rewrites if rule.relaxes}
    base = _without(given.base, relaxing)
    verdicts = {name: verdict for name, verdict in given.verdicts.items() if name not in relaxing}
    return Verified(base=base, verdicts=verdicts, refused={**given.refused, **relaxing})


def _candidates(base: RuleBase) -> list[_Rule]:
    return [*base.rewrites, *base.eliminates, *base.index_rules]


def _refusal(rule: _Rule, verdict: str, admitted: Collection[str]) -> str:
    """Why a rule is left out, empty where it is not."""
    if _is_wrong(rule):
        return "it is marked as wrong"
    if isinstance(rule, ast.Rewrite):
        beyond = [what for what in rule.relaxes if what not in admitted]
        if beyond:
            return f"it relaxes {', '.join(beyond)}"
    return "" if verdict.split(" ")[0] in (PROVED, TESTED) else f"its verdict is: {verdict}"


def _is_wrong(rule: _Rule) -> bool:
    return isinstance(rule, ast.Rewrite) and rule.unsound is not None


def _verdicts(base: RuleBase) -> dict[str, str]:
    known = dict(shipped(base))
    if _missing(base, known):
        known = {**recorded(base, QUICK, VERDICTS, WITH_PROOFS), **known}
    missing = _missing(base, known)
    if missing:
        from smartmem_rules.verification.run import judge_rules, rules_of  # start-up time

        places = [
            place for place, rule in enumerate(rules_of(base)) if isinstance(rule, _Rule) and rule.name in missing
        ]
        reports = judge_rules(base, places, budget=_SECONDS, trials=_TRIALS)
        record(reports, base, QUICK)
        known.update({one.name: shown(one.verdict, one.method, one.trials) for one in reports})
    return known


def _missing(base: RuleBase, known: Collection[str]) -> set[str]:
    return {rule.name for rule in _candidates(base) if rule.name not in known and not _is_wrong(rule)}


def _without(base: RuleBase, names: Collection[str]) -> RuleBase:
    return replace(
        base,
        rewrites=[rule for rule in base.rewrites if rule.name not in names],
        eliminates=[rule for rule in base.eliminates if rule.name not in names],
        index_rules=[rule for rule in base.index_rules if rule.name not in names],
    )
