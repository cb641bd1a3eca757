"""Every read and write of a kernel stays inside its tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.traffic import expressions
from smartmem_rules.tensor.definitions.inside import outside
from smartmem_rules.tensor.expr import Condition, Expr, Logic, Read, Select, children
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.ranges import surely_at_most

STAGE = "fusion"
MANY = 1 << 18
"""Points at which a thorough check computes an index that intervals do not decide."""


def check_bounds(kernels: Iterable[Kernel], tensors: Mapping[str, Stored], thorough: bool) -> None:
    """Check the indices of all reads, under the conditions around them, and of all stores.

    Intervals decide most of them. The rest is computed at every point in thorough checks; what an open extent leaves
    undecided stays open. An index that an integer tensor gives is held inside by the kernels themselves.

    Raises:
        InvariantError: an index leaves its axis.
    """
    for kernel in kernels:
        for store in (s for s in kernel.stores if s.tensor in tensors):
            _check(kernel, store.tensor, store.indices, (), tensors, thorough)
        for expr in expressions(kernel):
            for read, conditions in _reads(expr, ()):
                if read.tensor in tensors:
                    _check(kernel, read.tensor, read.indices, conditions, tensors, thorough)


def _check(
    kernel: Kernel,
    tensor: str,
    indices: tuple[Index, ...],
    conditions: tuple[Condition, ...],
    tensors: Mapping[str, Stored],
    thorough: bool,
) -> None:
    shape = tensors[tensor].type.shape
    if len(indices) != len(shape):
        raise InvariantError(STAGE, kernel.name, tensor, f"{len(indices)} indices for a tensor of {len(shape)} axes")
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        low, high = index.interval
        if surely_at_most(0, low) and surely_at_most(high, extent - 1):
            continue
        try:
            found = outside(index, extent, conditions, MANY if thorough else 0)
        except SymbolicExtentError:
            continue
        if found is not None and found.is_certain:
            raise InvariantError(
                STAGE, kernel.name, tensor, f"element {found.element} of axis {axis}, whose extent is {extent!r}"
            )


def _reads(expr: Expr, conditions: tuple[Condition, ...]) -> Iterator[tuple[Read, tuple[Condition, ...]]]:
    """The reads of an expression, each with the conditions under which it is evaluated."""
    if isinstance(expr, Read):
        yield expr, conditions
    elif isinstance(expr, Select):
        yield from _reads(expr.then, (*conditions, expr.condition))
        yield from _reads(expr.otherwise, (*conditions, Logic("not", (expr.condition,))))
    else:
        for child in children(expr):
            yield from _reads(child, conditions)
