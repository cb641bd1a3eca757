"""Which operand each input of an operator is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from smartmem_rules.language import syntax as ast

Operand = TypeVar("Operand")


def by_formals(operator: ast.Operator, operands: Sequence[Operand | None]) -> dict[str, Operand | list[Operand]]:
    """The run-time operands by the names of the inputs, of a variadic one as a list; absent ones are left out."""
    found: dict[str, Operand | list[Operand]] = {}
    rest = list(operands)
    for formal in operator.inputs:
        if formal.constant is not None:
            continue
        if formal.variadic:
            found[formal.name] = [one for one in rest if one is not None]
        elif rest and (operand := rest.pop(0)) is not None:
            found[formal.name] = operand
    return found
