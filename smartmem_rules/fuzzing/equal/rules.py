"""The rules that make equivalent models: those with a proof, read in both directions where both sides bind the same.

A rule read backwards is another rule (attributes that a pattern leaves out mean anything on the left, and their
defaults on the right), so it gets a verdict of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.verdicts import WITH_PROOFS, record, recorded, shipped
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.results import PROVED, TESTED
from smartmem_rules.verification.run import judge_rules, rules_of

BACKWARDS = ".backwards"
RULESETS = ("eliminate", "recognise", "algebra")
VERDICTS = (PROVED, TESTED)
KEEPS_VALUES = frozenset({"reassociation", "signed_zero"})
"""What a rule may relax: one that also relaxes NaN or infinities gives another value where a model is defined."""
_SECONDS = 10.0
_TRIALS = 60


@dataclass(frozen=True)
class Admitted:
    """A rule base for making equivalent models.

    Attributes:
        base: with the rules read backwards, and without those that have no such verdict.
        verdicts: what verification says of each admitted rule.
    """

    base: RuleBase
    verdicts: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.verdicts)


def both_ways(base: RuleBase) -> RuleBase:
    """The rule base with its rewrites read backwards as well, where that is a rule."""
    backwards = [made for rule in base.rewrites if (made := backward(rule)) is not None]
    return replace(base, rewrites=[*base.rewrites, *backwards])


def backward(rule: ast.Rewrite) -> ast.Rewrite | None:
    """A rewrite from right to left, None where its left side or a guard says what its right side does not.

    The equation of one of several patterns is none, because what stands beside it would be made, not found; nor is a
    rule that derives a fact.
    """
    if rule.part_of is not None or rule.derives is not None:
        return None
    if rule.unsound is not None or rule.bidirectional or not isinstance(rule.right, ast.PatternOperator):
        return None
    tensors, values = _bound(rule.right)
    used = set(_mentioned(rule.left)).union(*map(_asked, rule.guards))
    if not used <= tensors | values:
        return None
    return replace(rule, name=f"{rule.name}{BACKWARDS}", left=rule.right, right=rule.left, explores=True)


def _asked(guard: ast.Expression) -> set[str]:
    """What a guard asks about: its names, but for those of its own loops."""
    loops = {b.name for node in nodes(guard) if isinstance(node, ast.Reduction) for b in node.binders}
    return names_in(guard) - loops


def _bound(pattern: ast.Pattern) -> tuple[set[str], set[str]]:
    """The tensors (and lists and bundles of attributes) and the attributes that a left side gives names."""
    tensors: set[str] = set()
    values: set[str] = set()
    for part in _parts(pattern):
        if isinstance(part, ast.PatternVariable):
            tensors.add(part.name)
        elif isinstance(part, ast.PatternOperator):
            tensors |= {f"*{part.variadic}", f"@{part.bundle}"}
            values |= {a.value.id for a in part.attributes if isinstance(a.value, ast.Name)}
    return tensors, values


def _mentioned(pattern: ast.Pattern) -> Iterator[str]:
    for part in _parts(pattern):
        if isinstance(part, ast.PatternVariable):
            yield part.name
        elif isinstance(part, ast.PatternOperator):
            yield from (f"*{part.variadic}", f"@{part.bundle}")
            for attribute in part.attributes:
                yield from names_in(attribute.value)


def _parts(pattern: ast.Pattern) -> Iterator[ast.Pattern]:
    yield pattern
    if isinstance(pattern, ast.PatternOperator):
        for argument in pattern.arguments:
            yield from _parts(argument)


def admit(
    accepted: Sequence[str] = (PROVED,),
    only: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Admitted:
    """The rules that keep all values and have one of the accepted verdicts; what has none yet is verified.

    Args:
        only: names of rules; the others, and all read backwards but these, are left out.
        jobs: processes; by default one for each of up to eight cores.
    """
    base = both_ways(load_rules())
    if only is not None:
        base = _only(base, only)
    known = {**recorded(base, WITH_PROOFS), **shipped(base)}
    rules = rules_of(base)
    missing = [p for p, rule in enumerate(rules) if may_be_admitted(rule) and rule.name not in known]
    if missing:
        reports = judge_rules(base, missing, prove=True, budget=_SECONDS, trials=_TRIALS, jobs=jobs, progress=progress)
        record(reports, base, WITH_PROOFS)
        known = {**known, **{report.name: f"{report.verdict} ({report.method})" for report in reports}}
    usable = {rule.name for rule in rules if may_be_admitted(rule)}
    verdicts = {name: text for name, text in known.items() if name in usable and text.split(" ")[0] in accepted}
    return Admitted(_only(base, list(verdicts)), verdicts)


@lru_cache(maxsize=4)
def admitted_base(names: tuple[str, ...]) -> RuleBase:
    """The rule base with the rules of these names only, as `admit` gave them."""
    return _only(both_ways(load_rules()), names)


def may_be_admitted(rule: object) -> bool:
    """Whether a rule keeps all values, if its verdict says that it is right."""
    if isinstance(rule, ast.Rewrite):
        return rule.unsound is None and KEEPS_VALUES.issuperset(rule.relaxes)
    return isinstance(rule, ast.Eliminate | ast.IndexRule)


def _only(base: RuleBase, names: Sequence[str]) -> RuleBase:
    chosen = set(names)
    return replace(
        base,
        rewrites=[rule for rule in base.rewrites if rule.name in chosen],
        eliminates=[rule for rule in base.eliminates if rule.name in chosen],
        index_rules=[rule for rule in base.index_rules if rule.name in chosen],
    )
