"""What holds wherever loop variables go: that two indices or conditions are equal, that stores write every element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from smartmem_rules.tensor.atoms import Div, Lookup, Mod, Var
from smartmem_rules.tensor.expr import Compare, Condition, Logic, condition_indices
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.views import IndexMap

MOST_POINTS = 1 << 23
"""Points up to which all are looked at."""
_COMPARISONS = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


class Undecided(Exception):
    """There are too many points, or elements of tensors decide."""


def equal_indices(left: Index, right: Index, most: int = MOST_POINTS) -> bool:
    """Whether two indices have one value at every point; False where that cannot be decided.

    Args:
        most: points up to which all are looked at.
    """
    if left == right:
        return True
    try:
        grid = points(left.variables | right.variables, most)
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


def covers(written: Sequence[Sequence[Index]], shape: Sequence[int]) -> bool:
    """Whether stores at indices write every element of a tensor, each once: one alone, or boxes that part it."""
    if len(written) == 1:
        variables = tuple(sorted({v for index in written[0] for v in index.variables}, key=lambda v: v.name))
        return IndexMap(variables, tuple(written[0]), tuple(shape)).inverse is not None
    boxes = [box for indices in written if (box := _box(indices)) is not None]
    if not boxes or len(boxes) < len(written):
        return False
    apart = all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))
        for one, other in itertools.combinations(boxes, 2)
    )
    inside = all(low >= 0 and high <= extent for box in boxes for (low, high), extent in zip(box, shape, strict=True))
    return apart and inside and sum(math.prod(high - low for low, high in box) for box in boxes) == math.prod(shape)


def _box(indices: Sequence[Index]) -> list[tuple[int, int]] | None:
    """The places that indices run over, each a variable of its own behind a start; None for others."""
    box: list[tuple[int, int]] = []
    seen: set[Var] = set()
    for index in indices:
        match index.terms:
            case ():
                box.append((index.constant, index.constant + 1))
            case ((Var() as var, 1),) if var not in seen:
                seen.add(var)
                box.append((index.constant, index.constant + var.extent))
            case _:
                return None
    return box


def points(variables: frozenset[Var], most: int = MOST_POINTS) -> dict[Var, np.ndarray]:
    """A grid over all values of variables; raises Undecided where it has more than `most` points."""
    extents = [v.extent for v in variables]
    if any(map(is_symbolic, extents)) or math.prod(extents) > most:
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
