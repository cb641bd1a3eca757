"""What an author means who asks how often a term is read that the model does not have before the rule fires."""

from __future__ import annotations

from collections.abc import Iterable

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.language.printing.printer import print_pattern
from smartmem_rules.language.roots import roots_of
from smartmem_rules.rulebase.patterns import is_absent

_MOST = 4
"""Candidates that a message names of one kind."""


def uses_meant(rule: s.Rewrite, term: s.Pattern) -> Fix:
    """The terms and tensors of the left side that `uses` can be asked of, those next to the new term first."""
    name = next((let.name for let in rule.lets if let.value == term), "t")
    roots = roots_of(rule.left)
    parts = dict.fromkeys(part for root in roots for part in subpatterns(root))
    inner = [one for one in parts if isinstance(one, s.PatternOperator) and one not in roots]
    inner.sort(key=lambda one: (one.span.line, one.span.column))  # as they are read, outer ones first
    own = _tensors(term)
    for one in inner:
        if isinstance(term, s.PatternOperator) and one.operator == term.operator and set(_tensors(one)) == set(own):
            said = f"the left side has `{print_pattern(one)}`: write "
            if term not in set(subpatterns(rule.right)):
                return advice(f"{said}`let {name} = {print_pattern(one)}`")
            other = _free_name(rule)
            return advice(f"{said}`let {other} = {print_pattern(one)}`, and `uses({other})`")
    asked = {
        argument.id
        for guard in rule.guards
        for node in nodes(guard)
        if isinstance(node, s.Call) and node.function == "uses"
        for argument in node.arguments
        if isinstance(argument, s.Name)
    }
    bound = _tensors(rule.left)
    made_of = [one for one in own if one in bound]
    tensors = [one for one in made_of if one not in asked] or [one for one in bound if one not in asked]
    which = "that it is made of" if made_of else "of the left side"
    ways = [f"of a tensor {which}: {_any(tensors)}"] if tensors else []
    if inner:
        terms = " or ".join(f"`{print_pattern(one)}`" for one in inner[:_MOST])
        ways.append(f"of a term of the left side, which `let` names: {terms}")
    if not ways:
        return advice("leave the guard out: the left side has no inner term, and `uses` is asked of all its tensors")
    return advice(f"`{name}` is new, and the model reads it nowhere: ask it " + "; or ".join(ways))


def _free_name(rule: s.Rewrite) -> str:
    taken = {let.name for let in rule.lets} | {*_tensors(rule.left)}
    return next(one for one in ("t", "term", *(f"t{number}" for number in range(len(taken) + 1))) if one not in taken)


def _any(tensors: Iterable[str]) -> str:
    return " or ".join([f"`uses({one})`" for one in tensors][:_MOST])


def _tensors(pattern: s.Pattern) -> list[str]:
    """The tensors that a pattern binds or names, in their order."""
    found = (one for one in subpatterns(pattern) if isinstance(one, s.PatternVariable) and not is_absent(one))
    return list(dict.fromkeys(one.name for one in found))
