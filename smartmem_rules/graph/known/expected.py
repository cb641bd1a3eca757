"""Checks what definitions require of the elements of operands, where these are constants of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.weights import Values
from smartmem_rules.guards.constant_elements import LOOPED_OVER, at_each_place, over_elements
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes, tensors_of
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Definitions, Instance
from smartmem_rules.tensor.primitives import Array


class _UnknownError(Exception):
    """A loop would look at a tensor that is computed, or has too many elements."""


def check_elements(
    base: Definitions,
    instance: Instance,
    operands: Sequence[str | None],
    types: Mapping[str, TensorType],
    values: Values,
    where: str,
) -> None:
    """Check a node; what is required of a tensor that is no constant is not looked at.

    Args:
        operands: the names of the run-time operands in the model, None for absent ones.
        where: what the node is, for messages.

    Raises:
        Unsupported: a requirement cannot be computed.
        GraphError: a constant has an element that the operator cannot have.
    """
    if not instance.operator.expects:
        return
    tensors, named = _tensors(instance.operator, operands, types)

    def elements(own: str) -> Array:
        name = named.get(own)
        if name is None or name not in values or values.is_open(name) or types[name].elements > LOOPED_OVER:
            raise _UnknownError
        return values[name]

    scope = Scope(dict(instance.values), tensors, base.functions)
    scope.elements = over_elements(elements)
    for expected in instance.operator.expects:
        try:
            why = None if truth(expected, scope) else f"it requires {print_expression(expected)}"
        except _UnknownError:
            continue
        except DefinitionError as failure:
            raise Unsupported(str(failure)) from failure
        except Unsupported as failure:
            why = str(failure)
        if why is not None:
            raise GraphError(f"{where} cannot be computed: {_place(expected, scope, elements, named)}{why}")


def _tensors(
    operator: ast.Operator, operands: Sequence[str | None], types: Mapping[str, TensorType]
) -> tuple[dict[str, TensorName | TensorList | None], dict[str, str]]:
    """The inputs as a definition knows them, and the names in the model of the tensors that it reads."""
    tensors: dict[str, TensorName | TensorList | None] = {}
    named: dict[str, str] = {}
    rest = list(operands)
    for formal in operator.inputs:
        if formal.constant is not None:
            continue
        if formal.variadic:
            members = [(f"{formal.name}{place}", name) for place, name in enumerate(rest) if name is not None]
            named.update(members)
            tensors[formal.name] = TensorList(tuple(TensorName(own, types[name]) for own, name in members))
            continue
        name = rest.pop(0) if rest else None
        tensors[formal.name] = None if name is None else TensorName(formal.name, types[name])
        if name is not None:
            named[formal.name] = name
    return tensors, named


def _place(expected: ast.Expression, scope: Scope, elements: Callable[[str], Array], named: Mapping[str, str]) -> str:
    """The first element that a loop over one constant does not hold of; empty where there is no such loop."""
    for loop in nodes(expected):
        read = {name for name, _ in tensors_of(loop)} if isinstance(loop, ast.Reduction) else set()
        if not isinstance(loop, ast.Reduction) or len(read) != 1 or not read <= named.keys():
            continue
        (own,) = read
        array = elements(own)
        holds = at_each_place(loop, scope, {own: array})
        if holds is None or holds.size != array.size or holds.all():
            continue
        place = np.unravel_index(int(np.argmin(holds)), array.shape)
        at = f" at [{', '.join(map(str, map(int, place)))}]" if place else ""
        return f"{named[own]!r} is {array[place]}{at}; "
    return ""
