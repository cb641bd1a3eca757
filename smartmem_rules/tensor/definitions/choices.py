"""The body of the first member of a list for which a condition holds, as an expression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.definitions.literals import unify
from smartmem_rules.tensor.expr import Compare, Condition, Expr, select

MOST_IN_A_ROW = 128
"""Choices that are written one inside the other: compilers take 256 brackets around each other."""
IN_A_GROUP = 64

Choice = tuple[Condition, Expr]


def first_of(chosen: Sequence[Choice], otherwise: Expr, expr: ast.Reduction) -> Expr:
    """The body of the first choice whose condition holds, else another one.

    Many choices between places of one axis, as a `Concat` of many parts has them, are made in groups.
    """
    if len(chosen) <= MOST_IN_A_ROW or not _ascending(chosen):
        return _in_a_row(chosen, otherwise, expr)
    groups = [chosen[begin : begin + IN_A_GROUP] for begin in range(0, len(chosen), IN_A_GROUP)]
    joined = [(group[-1][0], _in_a_row(group[:-1], group[-1][1], expr)) for group in groups]
    return first_of(joined, otherwise, expr)


def _in_a_row(chosen: Sequence[Choice], otherwise: Expr, expr: ast.Reduction) -> Expr:
    result = otherwise
    for decided, body in reversed(chosen):
        then, result = unify(body, result, expr)
        result = select(decided, then, result)
    return result


def _ascending(chosen: Sequence[Choice]) -> bool:
    """Whether each condition implies the next."""
    return all(implies(one, other) for (one, _), (other, _) in pairwise(chosen))


def implies(one: Condition, other: Condition) -> bool:
    """Whether two conditions are `i < b` for one index, and the second bound is not below the first."""
    if not isinstance(one, Compare) or not isinstance(other, Compare) or (one.operator, other.operator) != ("<", "<"):
        return False
    constant = one.right.is_constant and other.right.is_constant
    return constant and one.left == other.left and one.right.constant <= other.right.constant
