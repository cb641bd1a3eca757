"""Functions that call themselves: what computes the same without that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt

_LISTS = "`[e for k in n]` gives a list, and `sum_of`, `prod`, `cumsum`, `min`, `max` go through one"
_CANDIDATES = "of candidates take one: `min([k for k in n if CONDITION])`"
_ROUNDING = re.compile(r"pad|align|round|ceil|multiple|up(_|$)")
_FOLDS = {"+": "sum_of", "*": "prod"}

Named = s.Function | s.Predicate | s.Constant


def recursion_fix(cycle: Sequence[Named]) -> Fix:
    """What to write in place of a definition that uses itself, by way of the others of its cycle."""
    first, last = cycle[0], cycle[-1]
    if isinstance(first, s.Constant) or isinstance(last, s.Constant):
        other = "itself" if first is last else f"`{last.name}`"
        return advice(f"give `{first.name}` a value that does not use {other}")
    if first is last:
        return advice(_written_otherwise(first))
    return advice(
        f"write into `{first.name}` what `{last.name}(...)` gives, or the other way round, without a call back"
    )


def _written_otherwise(function: s.Function | s.Predicate) -> str:
    name, parameters = function.name, function.parameters
    calls = _calls(function.body, name)
    multiple = _multiple(function)
    if multiple is not None:
        return f"write the {multiple[0]} multiple as `{multiple[1]}`"
    if all(_names(call.arguments) == list(parameters) for call in calls):
        own = "its own parameter" if len(parameters) == 1 else "its own parameters"
        return f"`{name}` calls itself with {own}: write the function that was meant in that place"
    folded = next(_folds(function), None)
    if folded is not None:
        return f"write `{folded}` in place of all steps; {_LISTS}"
    return f"write it without the call: {_LISTS}; {_CANDIDATES}"


def _calls(expression: s.Expression, name: str) -> list[s.Call]:
    return [node for node in nodes(expression) if isinstance(node, s.Call) and node.function == name]


def _names(arguments: Sequence[s.Expression]) -> list[str | None]:
    return [argument.id if isinstance(argument, s.Name) else None for argument in arguments]


def _multiple(function: s.Function | s.Predicate) -> tuple[str, str] | None:
    """The next or last multiple of a divisor, where the function looks for one step by step or its name says so."""
    if isinstance(function, s.Predicate) or not function.parameters:
        return None
    first = function.parameters[0]
    for node in nodes(function.body):
        match node:
            case s.Conditional(
                condition=s.Binary(operator="==", left=s.Binary(operator="%") as rest, right=s.Number(value=0))
            ):
                if rest.left == s.Name(s.NOWHERE, first):
                    divisor = print_expression(rest.right)
                    shown = divisor if isinstance(rest.right, s.Name | s.Number | s.Call) else f"({divisor})"
                    down = s.Binary(s.NOWHERE, "-", s.Name(s.NOWHERE, first), s.Number(s.NOWHERE, 1))
                    if any(call.arguments[:1] == (down,) for call in _calls(function.body, function.name)):
                        return "last", f"{first} // {shown} * {shown}"
                    return "next", f"ceil_div({first}, {divisor}) * {shown}"
    if len(function.parameters) == 2 and _ROUNDING.search(function.name):
        return "next", f"ceil_div({first}, {function.parameters[1]}) * {function.parameters[1]}"
    return None


def _folds(function: s.Function | s.Predicate) -> Iterator[str]:
    """Sums and products of what belongs to each step down to 0, and of the elements of a list."""
    for node in nodes(function.body):
        if not isinstance(node, s.Binary) or node.operator not in _FOLDS:
            continue
        for own, call in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(call, s.Call) or call.function != function.name or _calls(own, function.name):
                continue
            for parameter, argument in zip(function.parameters, call.arguments, strict=False):
                inner = _element(own, parameter, argument)
                if inner is not None:
                    yield f"{_FOLDS[node.operator]}({inner})"


def _element(own: s.Expression, parameter: str, argument: s.Expression) -> str | None:
    """The list of what each step has of its own."""
    match argument:
        case s.Binary(operator="-", left=s.Name(id=name), right=s.Number(value=1)) if name == parameter:
            step = s.Binary(own.span, "+", s.Name(own.span, "k"), s.Number(own.span, 1))
            body = rebuilt(own, lambda node: step if node == s.Name(s.NOWHERE, parameter) else None)
            return f"[{print_expression(body)} for k in {parameter}]"
        case s.Subscript(base=s.Name(id=name)) if name == parameter and own == replace(
            argument, items=(s.Number(own.span, 0),)
        ):
            return parameter
    return None
