"""Rules of which a pattern takes any one of several operators, as one rule for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.patterns import OR
from smartmem_rules.language.rebuilding import rebuilt

MEMBER_SEPARATOR = "."
"""Stands between the name of a family's rule and the member; names themselves have no such character."""

Families = Mapping[str, Sequence[str]]
"""The operators of each named family."""


def families_of(items: Iterable[s.Item]) -> Families:
    """The named families of items; of two with one name the first, and none that has the name of an operator."""
    found: dict[str, Sequence[str]] = {}
    operators = set()
    for item in items:
        if isinstance(item, s.OperatorFamily):
            found.setdefault(item.name, item.members)
        elif isinstance(item, s.Operator):
            operators.add(item.name)
    return {name: members for name, members in found.items() if name not in operators}


def chosen(rule: s.Rule, families: Families) -> Iterator[s.Rule]:
    """The rule with each choice of operators, named after them; the rule itself where it leaves none open.

    A named family is one operator wherever its name stands; `(Relu | Abs)(x)` is one at its place only.
    """
    if isinstance(rule, s.Eliminate | s.Keep):
        members = operators_of(rule.operator, families)
        for member in members if len(members) > 1 or members[0] != rule.operator else ():
            yield replace(rule, name=f"{rule.name}{MEMBER_SEPARATOR}{member}", operator=member)
        if members == [rule.operator]:
            yield rule
        return
    open_places = list(_open(rule.left, families)) if isinstance(rule, s.Rewrite) else []
    if not isinstance(rule, s.Rewrite) or not open_places:
        yield rule
        return
    keys = list(dict.fromkeys(open_places))
    for operators in itertools.product(*(operators_of(key[0], families) for key in keys)):
        choice = dict(zip(keys, operators, strict=True))
        made = _Choice(choice, families).of(rule)
        yield replace(made, name=MEMBER_SEPARATOR.join((rule.name, *operators)))


_Key = tuple[str, s.Span | None]
"""A named family, or operators at a place."""


def _key(pattern: s.PatternOperator, families: Families) -> _Key | None:
    if OR in pattern.operator:
        return pattern.operator, pattern.span
    return (pattern.operator, None) if pattern.operator in families else None


def _open(pattern: s.Pattern, families: Families) -> Iterator[_Key]:
    if isinstance(pattern, s.PatternOperator):
        for argument in pattern.arguments:
            yield from _open(argument, families)
        key = _key(pattern, families)
        if key is not None:
            yield key


def operators_of(operator: str, families: Families) -> list[str]:
    """The operators that a name stands for, those of a family inside of a family too."""
    found: list[str] = []
    for word in operator.split(OR):
        found += (
            (one for name in families[word] for one in _plain(name, families, (word,))) if word in families else [word]
        )
    return list(dict.fromkeys(found))


def _plain(name: str, families: Families, outer: tuple[str, ...]) -> Iterator[str]:
    if name not in families or name in outer:
        yield name
        return
    for one in families[name]:
        yield from _plain(one, families, (*outer, name))


class _Choice:
    """One choice of operators."""

    def __init__(self, choice: Mapping[_Key, str], families: Families) -> None:
        self._choice = choice
        self._families = families

    def of(self, rule: s.Rewrite) -> s.Rewrite:
        """The rule with that choice."""
        return rebuilt(rule, self._change)

    def _change(self, node: s.Syntax) -> s.Syntax | None:
        if not isinstance(node, s.PatternOperator):
            return None
        key = _key(node, self._families)
        member = None if key is None else self._choice.get(key)
        if member is None:
            return None
        arguments = tuple(rebuilt(argument, self._change) for argument in node.arguments)
        attributes = tuple(rebuilt(attribute, self._change) for attribute in node.attributes)
        return replace(node, operator=member, arguments=arguments, attributes=attributes)
