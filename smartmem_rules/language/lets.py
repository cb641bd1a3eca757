"""The names that a rule gives to terms and values by `let`, written out where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.patterns import pattern_of
from smartmem_rules.language.rebuilding import rebuilt


def with_lets(rule: s.Rule) -> s.Rule:
    """The rule with every name of a `let` replaced by what it names; a `let` may use those before it.

    `lets` keeps the names, each with its own value written out.
    """
    if not rule.lets:
        return rule
    meanings: dict[str, s.Expression | s.Pattern] = {}
    used: set[str] = set()
    lets = []
    for let in rule.lets:
        value = rebuilt(let.value, lambda node: _written_out(node, meanings, used))
        meanings.setdefault(let.name, value)
        lets.append(replace(let, value=value))
    bare = rebuilt(replace(rule, lets=()), lambda node: _written_out(node, meanings, used))
    return replace(bare, lets=tuple(replace(let, used=let.name in used) for let in lets))


def _written_out(node: s.Syntax, meanings: Mapping[str, s.Expression | s.Pattern], used: set[str]) -> s.Syntax | None:
    if isinstance(node, s.Name) and node.id in meanings:
        used.add(node.id)
        value = meanings[node.id]
        return s.Term(node.span, value) if isinstance(value, s.Pattern) else replace(value, span=node.span)
    if isinstance(node, s.PatternVariable) and node.name in meanings:
        used.add(node.name)
        value = meanings[node.name]
        return value if isinstance(value, s.Pattern) else pattern_of(replace(value, span=node.span))
    return None
