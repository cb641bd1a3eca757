"""What is wrong with named families of operators, and with names that stand for several operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.choices import Families
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, spelling


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
            fix = spelling(member, known, span) or advice("name operators that a file defines, or other families")
            yield Diagnostic(Code.UNKNOWN_OPERATOR, "error", message, span, fix=fix)
