"""The number of arithmetic operations of an expression."""

from __future__ import annotations

import math

from smartmem_rules.plan.kernel.byte_factors import PER_WORD
from smartmem_rules.plan.kernel.model import Contraction
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


def steps(c: Contraction) -> int:
    """Steps of a contraction's reduction at most; those of bytes take four elements at a time."""
    depth = math.prod(largest(v.extent) for v in c.k)
    return -(-depth // PER_WORD) if c.of_bytes else depth
