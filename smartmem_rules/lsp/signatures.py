"""What an editor shows while the arguments of a call are typed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expansion import expanded
from smartmem_rules.language.printing.builtin_docs import DOCS
from smartmem_rules.language.printing.printer import print_attribute, print_input, print_signature
from smartmem_rules.lsp.calls import OpenCall, open_call
from smartmem_rules.lsp.library import Library
from smartmem_rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call something; `active` is the number of the parameter at the cursor, None behind the last."""

    label: str
    parameters: tuple[str, ...]
    active: int | None
    meaning: str = ""


def signatures(library: Library, text: str, line: int, column: int) -> list[Signature]:
    """The ways to call what is called at a place (from 0), those that take so many arguments first."""
    lines = text.split("\n")
    call = open_call("\n".join([*lines[:line], lines[line][:column]]) if line < len(lines) else text)
    if call is None:
        return []
    found = list(_of(library, call))
    return sorted(found, key=lambda one: one.active is None)


def _of(library: Library, call: OpenCall) -> Iterator[Signature]:
    for operator in operators_named(library, call.name):
        yield _operator(operator, call)
    for module in library.modules():
        for item in expanded(module.items):
            if isinstance(item, s.Function | s.Predicate) and item.name == call.name:
                label = f"{item.name}({', '.join(item.parameters)})"
                meaning = item.comment if isinstance(item, s.Predicate) else ""
                yield Signature(label, item.parameters, _at(call.operands, len(item.parameters)), meaning)
    if call.name in DOCS:
        forms, meaning = DOCS[call.name]
        for form in re.findall(r"\w+\(.*?\)", forms):
            parameters = tuple(form[form.index("(") + 1 : -1].split(", "))
            repeats = parameters[-1] == "..."
            active = min(call.operands, len(parameters) - 1) if repeats else _at(call.operands, len(parameters))
            yield Signature(form, parameters, active, meaning)


def operators_named(library: Library, name: str) -> list[s.Operator]:
    """The overloads of an operator in all files."""
    items = (item for module in library.modules() for item in expanded(module.items))
    return [item for item in items if isinstance(item, s.Operator) and item.name == name]


def _operator(operator: s.Operator, call: OpenCall) -> Signature:
    inputs = [print_input(item) for item in operator.inputs]
    attributes = [print_attribute(item) for item in operator.attributes]
    active = _attribute_at(operator, call) if call.in_attributes else _operand_at(operator, call)
    return Signature(print_signature(operator), (*inputs, *attributes), active)


def _attribute_at(operator: s.Operator, call: OpenCall) -> int | None:
    names = [item.name for item in operator.attributes]
    if call.attribute in names:
        return len(operator.inputs) + names.index(call.attribute)
    left = [number for number, name in enumerate(names) if name not in call.given]
    return len(operator.inputs) + left[0] if left and call.attribute is None else None


def _operand_at(operator: s.Operator, call: OpenCall) -> int | None:
    if operator.inputs and operator.inputs[-1].variadic:
        return min(call.operands, len(operator.inputs) - 1)
    return _at(call.operands, len(operator.inputs))


def _at(number: int, count: int) -> int | None:
    return number if number < count else None
