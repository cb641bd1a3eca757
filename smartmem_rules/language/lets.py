"""The names that a rule gives to terms and values, by `let` or by attributes, written out where they stand."""

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


def with_attribute_operands(rule: s.Rewrite) -> s.Rewrite:
    """The rule with attributes of the left side that stand as operands of the right one read as computed constants."""
    tensors: set[str] = set()
    attributes: set[str] = set()
    stack: list[s.Pattern] = [rule.left]
    while stack:
        pattern = stack.pop()
        if isinstance(pattern, s.PatternVariable):
            tensors.add(pattern.name)
        elif isinstance(pattern, s.PatternOperator):
            tensors.update([pattern.variadic] if pattern.variadic else [])
            attributes.update(one.value.id for one in pattern.attributes if isinstance(one.value, s.Name))
            stack.extend(pattern.arguments)
    values = attributes - tensors
    if not values:
        return rule

    def computed(node: s.Syntax) -> s.Syntax | None:
        if isinstance(node, s.PatternVariable) and node.name in values:
            return s.PatternComputed(node.span, s.Name(node.span, node.name))
        return None

    return replace(
        rule, right=rebuilt(rule.right, computed), guards=tuple(rebuilt(one, computed) for one in rule.guards)
    )
