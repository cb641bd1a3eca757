"""Definitions that take an element from behind a list, whatever they are used with: where, and what was meant."""

from __future__ import annotations

from typing import TypeGuard

from smartmem_rules.analysis.tries import OUTSIDE_LIST
from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.language.printing.printer import print_expression

_NOTE = "found by trying operand types that its signature admits and its requirements allow"


def outside_list(operator: s.Operator, failure: str) -> Diagnostic | None:
    """The message about a failure of each use of a definition; None for other failures.

    Args:
        operator: as its author wrote it.
    """
    told = OUTSIDE_LIST.search(failure)
    if told is None:
        return None
    position, length = int(told[1]), int(told[2])
    elements = "one element" if length == 1 else f"{length} elements"
    last = "`[0]`" if length == 1 else f"`[{length - 1}]`"
    taken = list({node.span: node for node in nodes(_all_but_name(operator)) if _takes(node, position)}.values())
    begin = f"`{operator.name}` cannot be computed"
    if len(taken) != 1:
        message = f"{begin}: element {position} is taken of a list of {elements}"
        fix = advice(f"elements are counted from 0, so the last one is {last}; or `require` that there are more")
        return Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, operator.place("name"), note=_NOTE, fix=fix)
    (read,) = taken
    name = print_expression(read.base)
    new = f"{name}[{length - 1}]"
    fix = replacement(f"elements are counted from 0: write `{new}` for the last one", read.span, new)
    message = (
        f"{begin}: `{name}` has {elements} wherever its requirements hold, so there is no `{print_expression(read)}`"
    )
    return Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, read.span, note=_NOTE, fix=fix)


def _all_but_name(operator: s.Operator) -> tuple[object, ...]:
    types = tuple(output.type for output in operator.outputs)
    return types, operator.lets, operator.requires, operator.equations


def _takes(node: s.Syntax, position: int) -> TypeGuard[s.Subscript]:
    """Whether a node takes this element of a list."""
    if not isinstance(node, s.Subscript) or len(node.items) != 1:
        return False
    match node.items[0]:
        case s.Number(value=value):
            return value == position
        case s.Unary(operator="-", operand=s.Number(value=value)):
            return -value == position
        case _:
            return False
