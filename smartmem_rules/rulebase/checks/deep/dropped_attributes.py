"""Attributes that a left side binds, nothing asks for, and the right side sets to something of its own.

Such a rule takes any value of the attribute and gives the result of one. Drawn types show that only where the attribute
decides a shape; of `exclusive` or `alpha` they show nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, behind, edit, replacement
from smartmem_rules.language.printing.printer import print_expression, print_pattern

_Operators = Mapping[str, Sequence[s.Operator]]


def check_dropped(rule: s.Rewrite, operators: _Operators) -> Iterator[Diagnostic]:
    """Names of attributes that nothing uses though the right side has the attribute; predicates are written out."""
    if rule.bidirectional or rule.part_of is not None:
        return
    on_left = [node for node in nodes(rule.left) if isinstance(node, s.PatternOperator)]
    on_right = [node for node in nodes(rule.right) if isinstance(node, s.PatternOperator)]
    used = Counter(node.id for node in nodes((rule.left, rule.right, rule.guards)) if isinstance(node, s.Name))
    used.update(node.name for node in nodes((rule.right, rule.guards)) if isinstance(node, s.PatternVariable))
    for operator in on_left:
        for attribute in operator.attributes:
            if not isinstance(attribute.value, s.Name) or used[attribute.value.id] > 1:
                continue
            others = [one for one in on_left if one is not operator]
            for made in on_right:
                if _takes_its_place(operator, made, attribute.name, others, operators):
                    plain = not any(one.attributes or one.bundle for one in others)
                    yield _dropped(operator, attribute, made, operators, plain)
                    break


def _takes_its_place(
    operator: s.PatternOperator,
    made: s.PatternOperator,
    name: str,
    others: Sequence[s.PatternOperator],
    operators: _Operators,
) -> bool:
    """Whether an operator of the right side stands for one of the left side and has its attribute from nowhere."""
    given = _given(made, name)
    if made.bundle is not None or (given is not None and any(isinstance(node, s.Name) for node in nodes(given.value))):
        return False
    if _declared(operators, operator.operator, name) != _declared(operators, made.operator, name):
        return False
    if made.operator != operator.operator and any(one.operator == made.operator for one in others):
        return False
    value = None if given is None else given.value
    alike = [one for one in others if _declared(operators, one.operator, name) is not None]
    return all(_value(one, name) != value for one in alike)


def _given(pattern: s.PatternOperator, name: str) -> s.PatternAttribute | None:
    return next((one for one in pattern.attributes if one.name == name), None)


def _value(pattern: s.PatternOperator, name: str) -> s.Expression | None:
    given = _given(pattern, name)
    return None if given is None else given.value


def _declared(operators: _Operators, operator: str, name: str) -> tuple[str, s.Expression | None] | None:
    """The kind and the default of an attribute or known operand; None where an operator has none of that name."""
    for overload in operators.get(operator, ()):
        for attribute in overload.attributes:
            if attribute.name == name:
                return attribute.kind, attribute.default
        for item in overload.inputs:
            if item.name == name and item.constant is not None:
                return item.constant, item.default
    return None


def _dropped(
    operator: s.PatternOperator,
    attribute: s.PatternAttribute,
    made: s.PatternOperator,
    operators: _Operators,
    plain: bool,
) -> Diagnostic:
    """The message; `plain` where no other operator of the left side may move what the attribute means."""
    word, name = print_expression(attribute.value), attribute.name
    given = _given(made, name)
    declared = _declared(operators, made.operator, name)
    default = "" if declared is None or declared[1] is None else f", `{name} = {print_expression(declared[1])}`,"
    has = f"its default{default}" if given is None else f"`{name} = {print_expression(given.value)}`"
    message = f"nothing uses `{word}`, the `{name}` of `{operator.operator}`: `{made.operator}` has {has} on the right"
    return Diagnostic(
        Code.DROPPED_ATTRIBUTE,
        "warning",
        message,
        made.span if given is None else given.span,
        secondary=(attribute.span, "it is bound here, whatever it is"),
        fix=_copied(made, given, name, word) if plain else _computed(name, word),
    )


def _computed(name: str, word: str) -> Fix:
    """What to write where another operator of the left side may move what the attribute means."""
    return advice(f"write the `{name}` that follows from `{word}`, or fix the value on the left, `{name} = ...`")


def _copied(made: s.PatternOperator, given: s.PatternAttribute | None, name: str, word: str) -> Fix:
    otherwise = f", or fix the value on the left, `{name} = ...`"
    if given is not None:
        text = f"write `{name} = {word}`; where the rule holds for this value only, write it on the left as well"
        return replacement(text, given.value.span, word)
    new = s.PatternAttribute(made.span, name, s.Name(made.span, word))
    shown = print_pattern(replace(made, attributes=(*made.attributes, new)))
    if not made.attributes:
        return advice(f"write `{shown}`{otherwise}")
    return edit(f"write `{shown}`{otherwise}", Edit(behind(made.attributes[-1].span), f", {name} = {word}"))
