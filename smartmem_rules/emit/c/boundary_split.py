"""Boundary splitting: windows inside their tensor are computed without tests for padding.

A convolution reads zeros past the border of its image, so that each element of a window stands behind a condition.
Where a test of the row alone shows that the conditions hold for all elements of its window, a kernel takes loops
without them; only the windows at the border take the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Condition,
    Expr,
    Logic,
    Reduce,
    Select,
    compare,
    logic,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index


@dataclass(frozen=True)
class Interior:
    """Where `test` holds, `body` is what the expression is for all values of its inner variables."""

    test: Condition
    body: Expr


def interior(expr: Expr, inner: Collection[Var], most_tests: int) -> Interior | None:
    """What an expression is away from borders, None where it has none or they cannot be told from outside.

    Args:
        inner: the variables of the loops around the expression that the test stands before; those that reductions
            inside the expression bind are added.
        most_tests: comparisons that asking once may cost.
    """
    bound = set(inner).union(*(n.variables for n in walk(expr) if isinstance(n, Reduce)))
    tests: dict[Condition, None] = {}
    body = _inside(expr, bound, tests)
    conditions = dict.fromkeys(c for test in tests for c in (test.operands if isinstance(test, Logic) else (test,)))
    whole = logic("and", tuple(conditions))
    if isinstance(whole, bool) or len(conditions) > most_tests:
        return None
    return Interior(whole, body)


def _inside(expr: Expr, inner: set[Var], tests: dict[Condition, None]) -> Expr:
    match expr:
        case Select(condition=condition, then=then):
            always = _always(condition, inner)
            if isinstance(always, Compare | Logic):
                tests.setdefault(always)
                return _inside(then, inner, tests)
            return expr
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(_inside(a, inner, tests) for a in arguments))
        case Reduce(body=body):
            return replace(expr, body=_inside(body, inner, tests))
        case _:
            return expr


def _always(condition: Condition, inner: set[Var]) -> Condition | bool | None:
    """That the condition holds for all values of the inner variables; None where that cannot be said."""
    match condition:
        case Logic(operator="and", operands=operands):
            parts = [_always(operand, inner) for operand in operands]
            return None if None in parts else logic("and", tuple(p for p in parts if p is not None))
        case Compare(operator="<" | "<=", left=left, right=right):
            greatest = _greatest(left - right, inner)
            return None if greatest is None else compare(condition.operator, greatest, Index(0))
        case _:
            return None


def _greatest(index: Index, inner: set[Var]) -> Index | None:
    """The greatest value of an index over the inner variables, in terms of the others."""
    if index.gathered:
        return None
    rest, most = [], index.constant
    for atom, coefficient in index.terms:
        variables, ends = atom.variables, atom.interval
        if not variables & inner:
            rest.append((atom, coefficient))
        elif variables <= inner and not any(map(is_symbolic, (coefficient, *ends))):
            most += max(coefficient * end for end in ends)
        else:
            return None
    return Index(most, tuple(rest))
