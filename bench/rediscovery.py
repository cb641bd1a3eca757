"""Measures discovery: which known rules it finds again when all rules are taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.lets import with_lets
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.discovery.discover import Discovery, discover, underivable
from smartmem_rules.verification.instances.cases import Search

SEARCHES: tuple[tuple[tuple[str, ...], int], ...] = (
    (("Mul", "Reciprocal"), 3),
    (("Mul", "Sqrt"), 3),
    (("Mul", "Abs"), 3),
    (("Add", "Mul"), 3),
    (("Sub", "Mul"), 3),
    (("Exp", "ReduceSum", "ReduceProd"), 2),
    (("Neg", "Add", "Sub"), 2),
    (("Mul", "Div", "Reciprocal"), 2),
    (("Abs", "Neg", "Relu"), 2),
    (("Exp", "Log", "Sigmoid", "Relu"), 2),
    (("Add", "Div"), 3),
)
"""Operators and sizes that are searched."""

INSTANCES = 4
"""Instances at which a rule has to follow."""
MOST_CASES = 200

PRINTED = Path(__file__).with_name("published") / "dnnfusion.smr"
"""The rules that DNNFusion prints."""


@dataclass(frozen=True)
class Rediscovery:
    """Which rules follow from what was discovered, by name; None where none does."""

    printed: Mapping[str, tuple[str, ...] | None]
    shipped: Mapping[str, tuple[str, ...] | None]

    @property
    def counts(self) -> tuple[int, int]:
        """How many of the printed and of the shipped rules were found again."""
        printed, shipped = ([v for v in m.values() if v is not None] for m in (self.printed, self.shipped))
        return len(printed), len(shipped)


def rediscover(
    base: RuleBase,
    searches: Iterable[tuple[tuple[str, ...], int]] = SEARCHES,
    seconds: float = 60.0,
    seed: int = 1,
    progress: Callable[[tuple[str, ...], Discovery], None] | None = None,
) -> Rediscovery:
    """Search without any rewrite, and see which known rules equality saturation derives from what is found.

    Args:
        base: the operators, and the rewrites that are looked for.
        seconds: of processor time for one search.
    """
    bare = replace(base, rewrites=[])
    found: list[tuple[tuple[str, ...], Discovery]] = []
    for operators, size in searches:
        found.append((operators, discover(bare, operators, size, seed, seconds)))
        if progress is not None:
            progress(*found[-1])
    printed = rules_of(PRINTED)
    shipped = [r for r in base.rewrites if r.unsound is None and r.ruleset in ("algebra", "recognise")]
    return Rediscovery(
        {rule.name: _source(rule, base, found) for rule in printed},
        {rule.name: _source(rule, base, found) for rule in shipped},
    )


def rules_of(path: Path) -> list[ast.Rewrite]:
    """The rewrites of a file, with the values of their lets."""
    items = parse_text(path.read_text("utf-8"), path.name).items
    rules = [with_lets(item) for item in items if isinstance(item, ast.Rewrite)]
    return [rule for rule in rules if isinstance(rule, ast.Rewrite)]


def _source(
    rule: ast.Rewrite, base: RuleBase, found: Sequence[tuple[tuple[str, ...], Discovery]]
) -> tuple[str, ...] | None:
    """The operators of a search from whose rules a rule follows."""
    used = operators_of(rule.left) | operators_of(rule.right)
    for operators, discovery in found:
        # a reduction that appears as it is on both sides is an operand like any other
        reduced = {name for name in used if name.startswith("Reduce")}
        known = used <= set(operators) or (reduced and used - reduced <= set(operators))
        if known and follows(rule, replace(base, rewrites=list(discovery.working))):
            return operators
    return None


def follows(rule: ast.Rewrite, base: RuleBase) -> bool:
    """Whether equality saturation finds both sides of the rule equal at each of several instances.

    At one instance alone it would be left to chance whether the guards of other rules hold.
    """
    search = Search(rule, rule.left, rule.right, Instances(base), 3)
    found = (
        (case.left, case.right)
        for case in islice(search.cases(MOST_CASES), MOST_CASES)
        if case is not None
        and case.right is not None
        and case.left.type.dtype == "float32"
        and min(case.left.type.shape, default=0) > 1
    )
    pairs = list(islice(found, INSTANCES))
    # one after the other: operands of different instances have the same names
    return bool(pairs) and not any(underivable([pair], base) for pair in pairs)


def operators_of(pattern: ast.Pattern) -> set[str]:
    """The operators of a pattern."""
    if not isinstance(pattern, ast.PatternOperator):
        return set()
    return {pattern.operator}.union(*(operators_of(a) for a in pattern.arguments))
