"""Many terms of one operation, as an expression that nests no deeper than Python and compilers follow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.definitions.choices import IN_A_GROUP, MOST_IN_A_ROW
from smartmem_rules.tensor.definitions.literals import unify
from smartmem_rules.tensor.expr import Apply, Expr


def combined(function: str, terms: Sequence[Expr], expr: ast.Reduction) -> Expr:
    """The terms combined by an associative function: one after the other, or in groups if there are many."""
    if len(terms) > MOST_IN_A_ROW:
        groups = [terms[begin : begin + IN_A_GROUP] for begin in range(0, len(terms), IN_A_GROUP)]
        return combined(function, [combined(function, group, expr) for group in groups], expr)

    def both(left: Expr, right: Expr) -> Expr:
        one, other = unify(left, right, expr)
        return Apply(function, (one, other), one.dtype)

    return reduce(both, terms)
