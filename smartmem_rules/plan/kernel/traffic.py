"""What a kernel reads, writes and computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from smartmem_rules.plan.kernel.model import ACCUMULATOR, INNER, Kernel
from smartmem_rules.plan.kernel.operations import operations, steps
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, tensors_read
from smartmem_rules.tensor.ranges import largest


def expressions(kernel: Kernel) -> list[Expr]:
    """All expressions that a kernel computes."""
    found = [stage.body for stage in kernel.stages] + [store.value for store in kernel.stores]
    if kernel.contraction is not None:
        found += [stage.body for stage in kernel.contraction.stages]
        found += [kernel.contraction.a, kernel.contraction.b]
        found += [part.b for part in kernel.parts]
        if kernel.contraction.scores is not None:
            found += [kernel.contraction.scores.a, kernel.contraction.scores.b]
    return found


def accounted(kernel: Kernel) -> Kernel:
    """The kernel with what it reads and writes, and how much it computes."""
    writes = tuple(s.tensor for s in kernel.stores)
    return replace(kernel, reads=tensors_in_memory(kernel), writes=writes, operations=_operations(kernel))


def _operations(kernel: Kernel) -> int:
    elements = 1
    for var in kernel.axes:
        elements *= largest(var.extent)
    total = 0
    for stage in kernel.stages:
        total += elements * _extent(stage.axes) * operations(stage.body)
    for store in kernel.stores:
        total += elements * _extent(store.local) * operations(store.value)
    if kernel.contraction is not None:
        c = kernel.contraction
        rows = _extent((*c.batch, *c.m))
        # a kernel that finishes rows has all of their columns, which are none of its axes
        columns = 1 if c.n in kernel.axes else largest(c.n.extent)
        depth = steps(c)
        total += elements * columns * 2 * depth
        total += sum(rows * largest(part.n.extent) * 2 * depth for part in kernel.parts)
        scores = kernel.contraction.scores
        if scores is not None:
            total += rows * 2 * largest(scores.n.extent) * _extent(scores.k)
    return total


def tensors_in_memory(kernel: Kernel, packed: Iterable[str] | None = None) -> tuple[str, ...]:
    """The stored tensors that the kernel reads.

    Args:
        packed: tensors that hold a contraction's right factors, which it reads in the place of what they are made of.
    """
    internal = {ACCUMULATOR, INNER} | {s.name for s in kernel.stages}
    if kernel.contraction is not None:
        internal |= {s.name for s in kernel.contraction.stages}
    skipped: set[int] = set()
    if packed is not None and kernel.contraction is not None:
        skipped = {id(kernel.contraction.b), *(id(part.b) for part in kernel.parts)}
    reads: dict[str, None] = {}
    for expr in expressions(kernel):
        if id(expr) not in skipped:
            reads.update(dict.fromkeys(t for t in tensors_read(expr) if t not in internal))
    return tuple(dict.fromkeys((*reads, *(packed or ()))))


def _extent(variables: tuple[Var, ...]) -> int:
    count = 1
    for var in variables:
        count *= largest(var.extent)
    return count
