"""Common subexpressions across reductions: terms of a row's sum that are used again after it are stored.

A softmax divides the exponentials by their sum. On CPUs an array of them in cache costs less than computing them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smartmem_rules.language.blocks.device import TextChoices
from smartmem_rules.plan.kernel.model import Stage
from smartmem_rules.plan.kernel.operations import operations
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, free_variables, replaced, substitute_variables, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest


def share_terms(
    stages: Sequence[Stage], last: Sequence[Expr], text: TextChoices
) -> tuple[tuple[Stage, ...], tuple[Expr, ...]]:
    """The stages of a row and the expressions after them, with arrays of the terms that both need.

    Args:
        last: what is computed for each element after all stages.
        text: says which terms pay.
    """
    made: list[Stage] = []
    expressions = tuple(last)
    for stage in stages:
        terms = _terms(stage, text)
        changed = expressions if terms is None else tuple(_reading(e, terms) for e in expressions)
        if terms is None or changed == expressions:
            made.append(stage)
            continue
        expressions = changed
        (var,) = terms.axes
        read = Read(terms.name, (variable(var),), terms.dtype)
        assert isinstance(stage.body, Reduce)
        made += [terms, replace(stage, body=replace(stage.body, body=read))]
    return tuple(made), expressions


def _terms(stage: Stage, text: TextChoices) -> Stage | None:
    """The terms of a stage that is a sum (or another reduction) along one axis."""
    body = stage.body
    if stage.axes or not isinstance(body, Reduce) or len(body.variables) != 1:
        return None
    if body.body.dtype != "float32" or operations(body.body) < text.term_operations:
        return None
    if largest(body.variables[0].extent) > text.term_length:
        return None
    return Stage(f"{stage.name}@terms", body.variables, body.body, body.body.dtype)


def _reading(expr: Expr, terms: Stage) -> Expr:
    """The expression with reads in place of the terms, along whichever of its variables they run."""
    (var,) = terms.axes
    alike = sorted((v for v in _variables(expr) if v.extent == var.extent), key=lambda v: v.name)
    for own in alike:
        found = substitute_variables(terms.body, {var: variable(own)})
        expr = replaced(expr, found, Read(terms.name, (variable(own),), terms.dtype))
    return expr


def _variables(expr: Expr) -> set[Var]:
    return set(free_variables(expr)).union(*(n.variables for n in walk(expr) if isinstance(n, Reduce)))
