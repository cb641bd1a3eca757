"""The number of arithmetic operations of an expression."""

from __future__ import annotations

from smartmem_rules.tensor.expr import Expr, Read, Reduce, children
from smartmem_rules.tensor.ranges import largest


def operations(expr: Expr) -> int:
    """Scalar operations for one element, loops counted."""
    own = 0
    if isinstance(expr, Reduce):
        times = 1
        for var in expr.variables:
            times *= largest(var.extent)
        return times * (operations(expr.body) + 1)
    if not isinstance(expr, Read):
        own = 1
    return own + sum(operations(child) for child in children(expr))
