"""Says which requirement of an operator does not hold, and at which values."""

from __future__ import annotations

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, TensorName, truth

_MOST_ITEMS = 8


class UnmetError(Unsupported):
    """A requirement of an operator does not hold, though its signature takes the operands.

    `said` is the text of the requirement itself (`fail(...)`). Without it a text is made when it is read, as most are
    never read.
    """

    def __init__(self, operator: ast.Operator, requirement: ast.Expression, scope: Scope, said: str | None) -> None:
        super().__init__()
        self._parts = operator, requirement, scope
        self._said = said

    def __str__(self) -> str:
        if self._said is not None:
            return self._said
        operator, requirement, scope = self._parts
        part = next((one for one in conjuncts(requirement) if not _holds(one, scope)), requirement)
        values = [f"{name} is {text}" for name in sorted(_names(part)) if (text := _shown(name, scope)) is not None]
        given = f", and {', '.join(values)}" if values else ""
        return f"{operator.name} requires {print_expression(part)}{given} ({part.span})"


def _names(condition: ast.Expression) -> set[str]:
    return {node.id for node in nodes(condition) if isinstance(node, ast.Name)}


def _holds(condition: ast.Expression, scope: Scope) -> bool:
    try:
        return truth(condition, scope)
    except (Unsupported, DefinitionError):
        return False


def _shown(name: str, scope: Scope) -> str | None:
    """A value or the shape of a tensor; None for what a name of a loop or of a function is."""
    if name in scope.values:
        return value_text(scope.values[name])
    tensor = scope.tensors.get(name)
    if isinstance(tensor, TensorName):
        return f"{tensor.type.dtype}{value_text(tensor.type.shape)}"
    return "absent" if name in scope.tensors and tensor is None else None


def value_text(value: Value) -> str:
    """A value, of a list the first few members."""
    if not isinstance(value, tuple):
        return str(value)
    shown = ", ".join(map(str, value[:_MOST_ITEMS]))
    return f"[{shown}{', ...' if len(value) > _MOST_ITEMS else ''}]"
