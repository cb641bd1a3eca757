"""Whether reads stay inside their tensors, at the extents of one instance.

An index is compared with its axis by intervals first, each of them narrowed by one condition that the read stands
under. Where that decides nothing, the index is computed at every point of its loop variables that the conditions
leave. An index that an integer tensor decides is held inside by kernels; where that tensor itself is read is looked at.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import Compare, Condition, Logic, condition_indices
from smartmem_rules.tensor.extents import SymbolicExtentError, is_symbolic
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.ranges import surely_at_most

MOST_POINTS = 1 << 22
"""Points at which an index is computed, at most."""
_Numbers = np.ndarray[Any, np.dtype[Any]]


class OutsideError(Unsupported):
    """A definition reads outside of a tensor at these operands; the message says where and which element."""


@dataclass(frozen=True)
class Outside:
    """An element that an axis does not have, and whether that is certain."""

    element: int
    is_certain: bool = True


def outside(
    index: Index, extent: int, conditions: Sequence[Condition], most_points: int = MOST_POINTS
) -> Outside | None:
    """An element beyond an axis of some extent that the index may be, None where it stays inside.

    Args:
        conditions: under which the element is read.
        most_points: points up to which the index is computed at each, where intervals do not decide.

    Raises:
        SymbolicExtentError: for open extents it is not decided.
    """
    if index.gathered:  # a kernel holds it inside, where there is an element at all
        return Outside(0) if _never(extent) else None
    below, above = index, Index(extent - 1) - index
    facts = [fact for condition in conditions for fact in _facts(condition, True)]
    if _is_natural(below, facts) and _is_natural(above, facts):
        return None
    if index.is_open or is_symbolic(extent) or any(i.is_open for c in conditions for i in condition_indices(c)):
        low, high = index.interval
        raise SymbolicExtentError(f"elements {low!r} to {high!r} of an axis of extent {extent!r}", low, high, extent)
    if not conditions and all(isinstance(atom, Var) for atom, _ in index.terms):
        return _furthest(index, extent)
    return _enumerated(index, extent, conditions, most_points)


def _furthest(index: Index, extent: int) -> Outside | None:
    """What a sum of multiples of loop variables is furthest outside: it takes both ends of its interval."""
    low, high = index.interval
    if any(v.extent == 0 for v in index.variables) or (low >= 0 and high < extent):
        return None
    return Outside(low if low < 0 else high)


def read_positions(index: Index) -> Iterator[tuple[str | None, tuple[Index, ...], tuple[int, ...] | None]]:
    """What is read to compute an index: of tables their extent, of integer tensors the name."""
    for atom, _ in index.terms:
        match atom:
            case Div(value=value) | Mod(value=value):
                yield from read_positions(value)
            case Lookup(table=table, position=position):
                yield None, (position,), (len(table),)
                yield from read_positions(position)
            case Gathered(tensor=tensor, indices=indices):
                yield tensor, indices, None
                for inner in indices:
                    yield from read_positions(inner)
            case Var():
                pass


def is_natural(index: Index, conditions: Sequence[Condition]) -> bool:
    """Whether an index is surely 0 or more under some conditions."""
    if _is_natural(index, [fact for condition in conditions for fact in _facts(condition, True)]):
        return True
    return not index.is_open and not index.gathered and _enumerated(index, 1 << 62, conditions) is None


def values_at(indices: Sequence[Index], variables: Sequence[Var]) -> tuple[_Numbers, ...]:
    """Each index at every point of the variables, as an array with an axis for each variable."""
    shape = tuple(v.extent for v in variables)
    grid = dict(zip(variables, np.ogrid[tuple(slice(n) for n in shape)], strict=True))
    return tuple(np.broadcast_to(_values(index, grid), shape) for index in indices)


def _never(extent: int) -> bool:
    return not is_symbolic(extent) and extent == 0


def _is_natural(index: Index, facts: Sequence[Index]) -> bool:
    return surely_at_most(0, index.interval[0]) or any(surely_at_most(0, (index - fact).interval[0]) for fact in facts)


def _facts(condition: Condition, holds: bool) -> Iterator[Index]:
    """Forms that are 0 or more where a condition holds (or does not)."""
    match condition:
        case Logic(operator="not", operands=(operand,)):
            yield from _facts(operand, not holds)
        case Logic(operator=operator, operands=operands):
            if (operator == "and") is holds:
                for operand in operands:
                    yield from _facts(operand, holds)
        case Compare(operator="<", left=left, right=right):
            yield right - left - 1 if holds else left - right
        case Compare(operator="<=", left=left, right=right):
            yield right - left if holds else left - right - 1
        case Compare(operator=operator, left=left, right=right):
            difference = left - right
            if (operator == "==") is holds:
                yield difference
                yield right - left
                return
            low, high = difference.interval
            if surely_at_most(0, low):
                yield difference - 1
            if surely_at_most(high, 0):
                yield right - left - 1


def _enumerated(
    index: Index, extent: int, conditions: Sequence[Condition], most_points: int = MOST_POINTS
) -> Outside | None:
    """What the index is at every point of its variables at which the conditions hold."""
    single = [part for condition in conditions for part in _conjuncts(condition)]
    known = [c for c in single if not any(i.gathered for i in condition_indices(c))]
    variables = set(index.variables).union(*(i.variables for c in known for i in condition_indices(c)))
    if any(v.extent == 0 for v in variables):
        return None
    if math.prod(v.extent for v in variables) > most_points:
        low, high = index.interval
        return Outside(low if low < 0 else high, is_certain=False)
    ordered = sorted(variables, key=lambda v: v.name)
    grid = dict(zip(ordered, np.meshgrid(*(np.arange(v.extent) for v in ordered), indexing="ij"), strict=True))
    values = _values(index, grid)
    wrong = (values < 0) | (values >= extent)
    for condition in known:
        wrong = wrong & _holds(condition, grid)
    found = np.broadcast_to(values, wrong.shape)[wrong]
    return Outside(int(found.flat[0]), is_certain=len(known) == len(single)) if found.size else None


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    """Conditions that all hold where a condition holds, and only there: one of them may not be known."""
    match condition:
        case Logic(operator="and", operands=operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case Logic(operator="not", operands=(Logic(operator="or", operands=operands),)):
            for operand in operands:
                yield from _conjuncts(Logic("not", (operand,)))
        case Logic(operator="not", operands=(Logic(operator="not", operands=(operand,)),)):
            yield from _conjuncts(operand)
        case _:
            yield condition


def _values(index: Index, grid: Mapping[Var, _Numbers]) -> _Numbers:
    total = np.asarray(index.constant, np.int64)
    for atom, coefficient in index.terms:
        total = total + coefficient * _atom(atom, grid)
    return np.asarray(total)


def _atom(atom: Atom, grid: Mapping[Var, _Numbers]) -> _Numbers:
    match atom:
        case Var():
            return grid[atom]
        case Div(value=value, divisor=divisor):
            return _values(value, grid) // divisor
        case Mod(value=value, divisor=divisor):
            return _values(value, grid) % divisor
        case Lookup(table=table, position=position):
            return np.asarray(np.asarray(table, np.int64)[np.clip(_values(position, grid), 0, len(table) - 1)])
        case Gathered():
            raise AssertionError("an integer tensor decides this index")


def _holds(condition: Condition, grid: Mapping[Var, _Numbers]) -> _Numbers:
    match condition:
        case Compare(operator=operator, left=left, right=right):
            a, b = _values(left, grid), _values(right, grid)
            tests = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}
            return np.asarray(tests[operator](a, b))
        case Logic(operator="not", operands=(operand,)):
            return ~_holds(operand, grid)
        case Logic(operator=operator, operands=operands):
            parts = [_holds(operand, grid) for operand in operands]
            combine = np.logical_and if operator == "and" else np.logical_or
            return np.asarray(functools.reduce(combine, parts))
