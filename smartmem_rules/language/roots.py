"""Rules of several patterns that share operands: how they are written, and the equation of each pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Fix, advice, replacement

ROOTS = ","
"""The operator of a side of several patterns, as it is parsed; no author can write it."""
BESIDE = "Beside"
"""The shipped operator that gives its first operand, so that `Beside(p, q)` matches p where q is found as well."""


def joined(patterns: Sequence[s.Pattern]) -> s.Pattern:
    """A side of a rule: its pattern, or all of several."""
    if len(patterns) == 1:
        return patterns[0]
    first, last = patterns[0].span, patterns[-1].span
    span = first._replace(end_line=last.end_line, end_column=last.end_column)
    return s.PatternOperator(span, ROOTS, tuple(patterns), (), None, None, None, places={"name": span})


def roots_of(side: s.Pattern) -> tuple[s.Pattern, ...]:
    """The patterns of a side as it is written; of a left side that `equations` gives the one that it is of first."""
    if isinstance(side, s.PatternOperator):
        if side.operator == ROOTS:
            return side.arguments
        if side.operator == BESIDE and len(side.arguments) == 2:
            return (side.arguments[0], *roots_of(side.arguments[1]))
    return (side,)


def what_is_wrong(
    lefts: Sequence[s.Pattern], rights: Sequence[s.Pattern], both_ways: s.Span | None
) -> Iterator[tuple[s.Span, str, Fix]]:
    """Why a rule cannot have these sides; `both_ways` is where its `<=>` stands."""
    joint = next((one for one in lefts if _joined_by_and(one)), None)
    if joint is not None:
        yield joint.span, "`and` joins conditions, not patterns", advice("patterns of one rule stand between commas")
    elif len(lefts) != len(rights):
        count = "one pattern" if len(lefts) == 1 else f"{len(lefts)} patterns"
        yield (
            joined(rights).span,
            f"the left side has {count}, the right side {len(rights)}: each pattern has a right side of its own",
            advice(f"write {len(lefts)} pattern{'s' * (len(lefts) > 1)} behind `=>`, between commas"),
        )
    elif len(lefts) > 1 and both_ways is not None:
        message = "a rule of several patterns holds from left to right only"
        yield both_ways, message, replacement("write `=>`", both_ways, "=>")


def _joined_by_and(pattern: s.Pattern) -> bool:
    value = pattern.value if isinstance(pattern, s.PatternComputed) else None
    return isinstance(value, s.Binary) and value.operator in ("and", "or")


def equations(rule: s.Rewrite) -> Iterator[s.Rewrite]:
    """The equation of each pattern of a rule, named `RULE.1`, `RULE.2`, ...; the rule itself where it has one pattern.

    Each holds for all that its names stand for, so it is a rewrite of its own; the other patterns, which stand in
    `Beside`, only say what the names mean that its own pattern does not bind.
    """
    lefts, rights = roots_of(rule.left), roots_of(rule.right)
    if len(lefts) == 1 or len(lefts) != len(rights):
        yield rule
        return
    for place, (left, right) in enumerate(zip(lefts, rights, strict=True)):
        chain = [left, *lefts[:place], *lefts[place + 1 :]]
        side = chain.pop()
        while chain:
            first = chain.pop()
            places = {"name": first.span}
            side = s.PatternOperator(first.span, BESIDE, (first, side), (), None, None, None, places=places)
        yield replace(rule, name=f"{rule.name}.{place + 1}", left=side, right=right, part_of=rule.name)
