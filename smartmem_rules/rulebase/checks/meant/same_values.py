"""Rules of several patterns that give two different ones the same value: a right side was copied and not changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.language.roots import roots_of


def check_same_values(rules: Sequence[s.Rewrite]) -> Iterator[Diagnostic]:
    """Equations of one rule whose patterns differ in an operand alone, and whose right sides are the same."""
    first: dict[tuple[str, s.Pattern], s.Rewrite] = {}
    for rule in rules:
        if rule.part_of is None:
            continue
        earlier = first.setdefault((rule.part_of, rule.right), rule)
        one, other = roots_of(earlier.left)[0], roots_of(rule.left)[0]
        if earlier is rule or rule.guards != earlier.guards or not _differ_in_operands(one, other):
            continue
        message = (
            f"`{print_pattern(one)}` and `{print_pattern(other)}` get the same value, though their operands differ"
        )
        secondary = (earlier.right.span, "the same value is here")
        fix = _value_meant(rule)
        yield Diagnostic(Code.SAME_PATTERN, "error", message, rule.right.span, secondary=secondary, fix=fix)


def _differ_in_operands(one: s.Pattern, other: s.Pattern) -> bool:
    """Whether two patterns are the same but for the names of tensors."""

    def unnamed(node: s.Syntax) -> s.Syntax | None:
        return s.PatternVariable(node.span, "x") if isinstance(node, s.PatternVariable) else None

    return one != other and rebuilt(one, unnamed) == rebuilt(other, unnamed)


def _value_meant(rule: s.Rewrite) -> Fix:
    """The value of a later pattern: with the names that no equation uses, where they continue those that it has."""
    unused = [let for let in rule.lets if not let.used]
    for let in unused:
        for before in rule.lets:
            if isinstance(let.value, s.Binary) and let.value.operator == "+" and let.value.left == before.value:
                following = _shifted(rule.right, before, let)
                if following != rule.right:
                    shown = _changed(rule.right, following)
                    return advice(f"nothing uses `{let.name}`: write `{shown}` if this value follows the first")
    if unused:
        names = ", ".join(f"`{let.name}`" for let in unused)
        return advice(f"write the value of this pattern: nothing uses {names}")
    own = {part.name for part in subpatterns(roots_of(rule.left)[0]) if isinstance(part, s.PatternVariable)}
    return advice(
        f"write what belongs to this pattern, whose operands are {', '.join(f'`{one}`' for one in sorted(own))}"
    )


def _changed(old: s.Pattern, new: s.Pattern) -> str:
    """The attributes that are others; the whole pattern where its operands are."""
    if not isinstance(old, s.PatternOperator) or not isinstance(new, s.PatternOperator):
        return print_pattern(new)
    if old.arguments != new.arguments:
        return print_pattern(new)
    others = [one for was, one in zip(old.attributes, new.attributes, strict=True) if was != one]
    return ", ".join(f"{one.name} = {print_expression(one.value)}" for one in others)


def _shifted(right: s.Pattern, before: s.RuleLet, after: s.RuleLet) -> s.Pattern:
    """A part that begins where the one from 0 on ends."""
    ends = {node.span for node in nodes(right) if isinstance(node, s.Expression) and node == before.value}

    def change(node: s.Syntax) -> s.Syntax | None:
        if isinstance(node, s.Expression) and node.span in ends and node == before.value:
            return s.Name(node.span, after.name)
        if isinstance(node, s.Number) and node.value == 0 and ends:
            return s.Name(node.span, before.name)
        return None

    return rebuilt(right, change)
