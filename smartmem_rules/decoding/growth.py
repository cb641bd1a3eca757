"""Whether a model leaves the cache as it is and puts new rows behind it, by the equations of its graph.

Where that holds for all elements, the cache can be written in place: only the new rows are computed and stored.
"""

from __future__ import annotations

from smartmem_rules.decoding.graphs import cache_input
from smartmem_rules.decoding.interface import CachedTensor
from smartmem_rules.graph.model import Graph
from smartmem_rules.tensor.expr import Compare, Equation, Expr, Read, Select, substitute_variables
from smartmem_rules.tensor.index import Index, constant, variable

_LONGEST = 64
"""Equations that are followed from an output to an input."""


def keeps_past(graph: Graph, tensor: CachedTensor) -> bool:
    """Whether each element of the present that has a place in the past is the element there.

    Args:
        graph: the imported graph of a step behind a cache, with equations.
    """
    equations = {equation.tensor: equation for node in graph.nodes for equation in node.equations}
    start = equations.get(tensor.present)
    if start is None:
        return False
    wanted = tuple(
        variable(var) if extent != 1 else constant(0)
        for var, extent in zip(start.variables, start.type.shape, strict=True)
    )
    past = graph.types[cache_input(tensor)].shape[0]
    found = _in_the_past(Read(tensor.present, wanted, start.type.dtype), equations, wanted[tensor.axis], past)
    return isinstance(found, Read) and found.tensor == tensor.past and found.indices == wanted


def _in_the_past(expression: Expr, equations: dict[str, Equation], place: Index, past: int) -> Expr:
    """What an element is where its place lies in the past, as far as it is one element of another tensor."""
    for _ in range(_LONGEST):
        if isinstance(expression, Select):
            if expression.condition != Compare("<", place, constant(past)):
                return expression
            expression = expression.then
        elif isinstance(expression, Read) and expression.tensor in equations and not _is_input(expression, equations):
            equation = equations[expression.tensor]
            expression = substitute_variables(
                equation.body, dict(zip(equation.variables, expression.indices, strict=True))
            )
        else:
            return expression
    return expression


def _is_input(read: Read, equations: dict[str, Equation]) -> bool:
    """Whether a tensor is the cache in the order of the model's axes."""
    body = equations[read.tensor].body
    return isinstance(body, Read) and body.tensor not in equations
