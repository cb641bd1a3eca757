"""The tensors that groups read: how often, and through which left factor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Equation, Expr, Read, Reduce, children, substitute_variables, tensors_read, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest


def group_moves_only(group: Group) -> bool:
    return all(m.moves_only for m in group.members)


def left_key(group: Group) -> object:
    """What two contractions share when they read the same rows: the left factor with its variables numbered."""
    matched = group.contraction
    assert matched is not None
    axes = (matched.batch, matched.m, matched.reduce.variables)
    names = {v: variable(Var(f"{i}.{j}", v.extent)) for i, part in enumerate(axes) for j, v in enumerate(part)}
    return substitute_variables(matched.a, names), tuple(tuple(v.extent for v in part) for part in axes)


def reads_of(expr: Expr) -> list[Read]:
    return [node for node in walk(expr) if isinstance(node, Read)]


def reads_through(expr: Expr, inlined: dict[str, Equation]) -> list[Read]:
    return [r for r in reads_of(expr) if r.tensor not in inlined]


def evaluations(reader: Equation, tensor: str, group: Group, reduces: bool) -> int:
    """How many elements of the tensor a kernel reads, every loop counted; a contraction stages each row once.

    Args:
        reduces: whether an element takes loops of its own, which nothing moves out of loops that it does not depend on.
    """
    expressions = [reader.body]
    if group.contraction is not None and group.contraction.reads(tensor):
        expressions = [group.contraction.a, group.contraction.b]
    elif reduces:
        return max((_turns(loops) for read, loops in _nested(reader.body, reader.variables) if read.tensor == tensor))
    total = 0
    for read in (r for expr in expressions for r in reads_of(expr) if r.tensor == tensor):
        count = math.prod(largest(v.extent) for v in {v for index in read.indices for v in index.variables})
        if group.form == "window":
            count = max(count, largest(reader.type.elements))
        total = max(total, count)
    return total


def _turns(loops: Iterable[Var]) -> int:
    return math.prod(largest(v.extent) for v in loops)


def _nested(expr: Expr, loops: tuple[Var, ...]) -> Iterator[tuple[Read, tuple[Var, ...]]]:
    """The reads of an expression, each with the loops around it."""
    if isinstance(expr, Read):
        yield expr, loops
    inner = (*loops, *expr.variables) if isinstance(expr, Reduce) else loops
    for child in children(expr):
        yield from _nested(child, inner)


def rows_line_up(group: Group, tensor: str, reader: Group, inlined: dict[str, Equation]) -> bool:
    """Whether each row of the contraction's first factor reads exactly one row of the reduction."""
    matched = reader.contraction
    assert matched is not None
    reads = [r for r in reads_through(matched.a, inlined) if r.tensor == tensor]
    everywhere = sum(r.tensor == tensor for m in reader.members for r in reads_of(m.equation.body))
    if len(reads) != 1 or everywhere != 1 or tensor not in tensors_read(matched.a):
        return False
    k = set(matched.reduce.variables)
    rows = set(group.space)
    local_seen: set[Var] = set()
    for index, place in zip(reads[0].indices, group.coordinates[tensor], strict=True):
        if place.variables & rows or place.is_constant:
            # where rows are blocks of an axis (a group's channels), the index tells the row and a place in it
            if index.variables & k or not (place.is_constant or place in map(variable, rows)):
                return False
            continue
        used = index.variables
        if len(used) != 1 or not used <= k:
            return False
        (var,) = used
        if index != variable(var) or var in local_seen or {var.extent} != {v.extent for v in place.variables}:
            return False
        local_seen.add(var)
    return bool(local_seen)
