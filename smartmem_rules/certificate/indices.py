"""Whether two indices, or two conditions over indices, are equal wherever their variables go."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smartmem_rules.tensor.expr import Compare, Condition, Logic, condition_indices
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Div, Index, Lookup, Mod, Var

MOST_POINTS = 1 << 23
"""Points up to which all are looked at."""
_COMPARISONS = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


class Undecided(Exception):
    """There are too many points, or elements of tensors decide."""


def equal_indices(left: Index, right: Index) -> bool:
    """Whether two indices have one value at every point; False where that cannot be decided."""
    if left == right:
        return True
    try:
        grid = points(left.variables | right.variables)
        return bool(np.all(evaluated(left, grid) == evaluated(right, grid)))
    except Undecided:
        return False


def equal_conditions(left: Condition, right: Condition) -> bool:
    """Whether two conditions hold at the same points; False where that cannot be decided."""
    if left == right:
        return True
    try:
        variables = {v for c in (left, right) for index in condition_indices(c) for v in index.variables}
        grid = points(frozenset(variables))
        return bool(np.all(_holds(left, grid) == _holds(right, grid)))
    except Undecided:
        return False


def points(variables: frozenset[Var]) -> dict[Var, np.ndarray]:
    """A grid over all values of variables."""
    extents = [v.extent for v in variables]
    if any(map(is_symbolic, extents)) or math.prod(extents) > MOST_POINTS:
        raise Undecided
    ordered = sorted(variables, key=lambda v: v.name)
    return dict(zip(ordered, np.ogrid[tuple(slice(v.extent) for v in ordered)], strict=True)) if ordered else {}


def evaluated(index: Index, grid: Mapping[Var, np.ndarray]) -> np.ndarray:
    """The values of an index over a grid."""
    total: np.ndarray = np.asarray(index.constant)
    for atom, coefficient in index.terms:
        match atom:
            case Var():
                part = grid[atom]
            case Div(value=value, divisor=divisor):
                part = evaluated(value, grid) // divisor
            case Mod(value=value, divisor=divisor):
                part = evaluated(value, grid) % divisor
            case Lookup(table=table, position=position):
                place = evaluated(position, grid)
                if place.min(initial=0) < 0 or place.max(initial=0) >= len(table):
                    raise Undecided
                part = np.asarray(table)[place]
            case _:
                raise Undecided
        total = total + coefficient * part
    return total


def _holds(condition: Condition, grid: Mapping[Var, np.ndarray]) -> np.ndarray:
    match condition:
        case Compare(operator=operator, left=left, right=right):
            return np.asarray(_COMPARISONS[operator](evaluated(left, grid), evaluated(right, grid)))
        case Logic(operator="not", operands=(operand,)):
            return np.asarray(~_holds(operand, grid))
        case Logic(operator=operator, operands=operands):
            whole = np.logical_and if operator == "and" else np.logical_or
            total = _holds(operands[0], grid)
            for operand in operands[1:]:
                total = np.asarray(whole(total, _holds(operand, grid)))
            return total
