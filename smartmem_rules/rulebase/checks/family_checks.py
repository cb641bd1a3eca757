"""What is wrong with named families of operators, and with names that stand for several operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.choices import Families
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, spelling
from smartmem_rules.language.patterns import OR
from smartmem_rules.language.printing.other_functions import operator_elsewhere


def check_operator_family(
    family: s.OperatorFamily, operators: Mapping[str, Sequence[s.Operator]], families: Families
) -> Iterator[Diagnostic]:
    """Members that are no operators or stand twice, and a name that patterns could not use."""
    if not family.name[0].isupper():
        message = f"the family `{family.name}` begins with a lower-case letter, like a tensor"
        fix = advice(f"call it `{family.name[0].upper()}{family.name[1:]}`")
        yield Diagnostic(Code.MALFORMED, "error", message, family.place("name"), fix=fix)
    if family.name in operators:
        message = f"`{family.name}` is an operator already"
        fix = advice("give the family another name: patterns name operators and families alike")
        secondary = (operators[family.name][0].place("name"), "it is defined here")
        yield Diagnostic(Code.DUPLICATE_NAME, "error", message, family.place("name"), secondary=secondary, fix=fix)
    known = {*operators, *families} - {family.name}
    for place, member in enumerate(family.members):
        span = family.place(f"members:{member}")
        if member in family.members[:place]:
            message = f"`{member}` is a member twice"
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, span, fix=advice("leave one of them out"))
        elif member not in known:
            message = f"there is no operator `{member}`"
            near = spelling(member, known, span) or operator_elsewhere(member, span, operators)
            fix = near or advice("name operators that a file defines, or other families")
            yield Diagnostic(Code.UNKNOWN_OPERATOR, "error", message, span, fix=fix)


def not_chosen(pattern: s.PatternOperator, rule: s.Rewrite, families: Families) -> Diagnostic:
    """A family of which nothing says which operator is meant; a left side has chosen its operators by then."""
    if _is_choice(rule.left, rule.right):
        message = "both sides are the same, whichever operator is chosen, so the rule does nothing"
        fix = advice("write on the right what the left side becomes, or leave the rule out")
        return Diagnostic(Code.SAME_SIDES, "error", message, rule.right.span, fix=fix)
    message = f"the left side does not say which operator of `{pattern.operator}` this is"
    fix = advice("name the family: `family NAME = ...`, and write its name on both sides")
    members = set(pattern.operator.split(OR))
    named = next((name for name, one in families.items() if set(one) == members), None)
    if named is not None and named != pattern.operator:
        fix = advice(f"write `{named}`, the family of these operators, here and on the left side")
    elif pattern.operator in families:
        fix = advice(f"write `{pattern.operator}` on the left side, too: it is one operator there and here")
    return Diagnostic(Code.UNBOUND_VARIABLE, "error", message, pattern.place("name"), fix=fix)


def _is_choice(left: s.Pattern, right: s.Pattern) -> bool:
    """Whether a left side that has chosen its operators is one of those that the right side stands for."""
    if not isinstance(left, s.PatternOperator) or not isinstance(right, s.PatternOperator):
        return left == right
    if left.operator not in right.operator.split(OR) or len(left.arguments) != len(right.arguments):
        return False
    arguments = zip(left.arguments, right.arguments, strict=True)
    rest = replace(right, operator=left.operator, arguments=left.arguments)
    return rest == left and all(_is_choice(one, other) for one, other in arguments)
