"""The whole expression that a term computes: two terms with one expression are equal whatever their operands hold."""

from __future__ import annotations

from smartmem_rules.tensor.expr import Equation, Expr, Read, own_indices, substitute_reads, substitute_variables, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.inlining import FreshNames, inline, refresh
from smartmem_rules.verification.semantics.terms import Term, flatten, leaves

LARGEST = 400
"""Nodes of an expression that is looked at."""


def renamed(equation: Equation, names: FreshNames) -> Equation:
    """The equation over variables that occur nowhere else."""
    variables = tuple(names.var(v.extent) for v in equation.variables)
    values = {old: variable(new) for old, new in zip(equation.variables, variables, strict=True)}
    body = refresh(substitute_variables(equation.body, values), names)
    return Equation(equation.tensor, variables, body, equation.type)


def expression(term: Term) -> Expr | None:
    """An element of a term over its leaves, with canonical names; None where it is too large or gathers."""
    inlined: dict[str, Equation] = {}
    inner = FreshNames("s")
    flat = flatten(term, "term")
    for number, equation in enumerate(flat):
        own = renamed(equation, FreshNames(f"g{number}_"))
        if any(i.gathered - leaves(term).keys() for node in walk(own.body) for i in own_indices(node)):
            return None

        def read(node: Read) -> Expr:
            return inline(inlined[node.tensor], node.indices, inner) if node.tensor in inlined else node

        body = substitute_reads(own.body, read)
        if sum(1 for _ in walk(body)) > LARGEST:
            return None
        inlined[equation.tensor] = Equation(equation.tensor, own.variables, body, equation.type)
    if not flat:
        return None
    return renamed(inlined[flat[-1].tensor], FreshNames("x")).body
