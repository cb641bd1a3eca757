"""Fused attention: contractions whose result is reduced row by row and contracted again stay on chip."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from smartmem_rules.language.blocks.fuse import Attention
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, free_variables, tensors_read, walk
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import largest, several
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import axis_variables, index_map


def row_values(rows: Group, reader: Group) -> dict[Var, Index]:
    """The reduction's row variables in terms of the loop variables of the contraction that reads its result."""
    matched = reader.contraction
    assert matched is not None
    read = next(n for n in walk(matched.a) if isinstance(n, Read) and n.tensor in rows.coordinates)
    values: dict[Var, Index] = {}
    for index, target in zip(read.indices, rows.coordinates[read.tensor], strict=True):
        for var in target.variables & set(rows.space):
            values[var] = index
    return values


def covers_rows(rows: Group, reader: Group) -> bool:
    """Whether the contraction reads every row of the reduction, and each for one row of its own."""
    matched = reader.contraction
    assert matched is not None
    space = (*matched.batch, *matched.m)
    shape, target = tuple(v.extent for v in space), tuple(v.extent for v in rows.space)
    if math.prod(shape) != math.prod(target):
        return False
    values = row_values(rows, reader)
    renamed = {v: variable(n) for v, n in zip(space, axis_variables(shape), strict=True)}
    places = tuple(substitute(values[v], renamed) for v in rows.space)
    return index_map(shape, target, places).inverse is not None


@dataclass(frozen=True)
class ScoreRows:
    """How the scores' rows belong to the reader.

    Attributes:
        values: the scores' loop variables, but for the columns, in terms of the reader's.
        local: the variable of the reduction that runs over the columns.
        space: the scores' loop variables at an element of their tensor.
    """

    values: dict[Var, Index]
    local: Var
    space: Callable[[Sequence[Index]], tuple[Index, ...]]


def score_values(scores: Group, rows: Group, reader: Group, tensor: str) -> ScoreRows | None:
    """How the rows of the scores are computed inside the reader.

    None where the rows of the scores are not the rows of the reduction.
    """
    matched = scores.contraction
    assert matched is not None
    member = next(m for m in scores.members if m.tensor == tensor)
    shape = member.equation.type.shape
    names = axis_variables(tuple(v.extent for v in matched.space))
    renamed = {v: variable(n) for v, n in zip(matched.space, names, strict=True)}
    coordinates = tuple(substitute(i, renamed) for i in scores.coordinates[tensor])
    backward = index_map(tuple(v.extent for v in matched.space), shape, coordinates).inverse
    if backward is None:
        return None
    at = row_values(rows, reader)
    found: ScoreRows | None = None
    reads = _reads_by_rows(rows, tensor)
    if reads is None:
        return None
    for read in reads:
        values = dict(zip(matched.space, backward.apply(read), strict=True))
        place = values[matched.n]
        local = next((v for v in place.variables if place == variable(v)), None)
        if local is None or local in rows.space or local.extent != matched.n.extent:
            return None
        if any(values[v].variables - set(rows.space) for v in matched.space if v is not matched.n):
            return None
        row = {v: substitute(i, at) for v, i in values.items() if v is not matched.n}
        if found is not None and found.values != row:
            return None
        found = ScoreRows(row, local, backward.apply)
    return found


def _reads_by_rows(rows: Group, tensor: str) -> list[tuple[Index, ...]] | None:
    """The indices at which a reduction reads a tensor, in its own rows; None where it reads it in between."""
    found = []
    for user in rows.members:
        if user.tensor not in rows.coordinates:  # recomputed inside the rows that read it
            if tensor in tensors_read(user.equation.body):
                return None
            continue
        own = dict(zip(user.equation.variables, rows.coordinates[user.tensor], strict=True))
        for read in walk(user.equation.body):
            if isinstance(read, Read) and read.tensor == tensor:
                found.append(tuple(substitute(i, own) for i in read.indices))
    return found


def scores_line_up(scores: Group, rows: Group, reader: Group, tensor: str, rule: Attention) -> bool:
    """Whether the reader can compute the scores of its own rows, with the right factor shared by a whole batch."""
    matched, outer = scores.contraction, reader.contraction
    assert matched is not None
    assert outer is not None
    inner = math.prod(v.extent for v in matched.reduce.variables)
    outer_k = math.prod(v.extent for v in outer.reduce.variables)
    columns = max(largest(matched.n.extent * inner), largest(outer.n.extent * outer_k))
    if 4 * largest(matched.n.extent) > rule.row_bytes or 4 * columns > rule.right_bytes:
        return False
    found = score_values(scores, rows, reader, tensor)
    if found is None:
        return False
    values = found.values
    batch = set(outer.batch)
    needed = free_variables(matched.b) & set(matched.space) - {matched.n}
    if any(values[v].variables - batch for v in needed):
        return False
    allowed = batch | set(outer.m)
    return several(inner) and all(values[v].variables <= allowed for v in values)


def source_values(source: Group, rows: Group, tensor: str) -> dict[Var, Index] | None:
    """The reduction's row variables in terms of the loop variables of the contraction that makes its rows.

    None where a row of the reduction is not one whole row of the contraction.
    """
    matched = source.contraction
    assert matched is not None
    coordinates = source.coordinates[tensor]
    values: dict[Var, Index] = {}
    reads = _reads_by_rows(rows, tensor)
    if reads is None:
        return None
    for read in reads:
        for here, place in zip(read, coordinates, strict=True):
            if matched.n in place.variables:
                if place != variable(matched.n) or not _whole_axis(here, matched.n.extent, set(rows.space)):
                    return None
            elif here.is_constant:
                if not place.is_constant:
                    return None
            else:
                row = next(iter(here.variables), None)  # none where a tensor holds which row is read
                if row is None or here != variable(row) or row not in rows.space:
                    return None
                if values.setdefault(row, place) != place:
                    return None
    made = math.prod(v.extent for v in (*matched.batch, *matched.m))
    complete = set(values) == set(rows.space) and made == math.prod(v.extent for v in rows.space)
    return values if complete else None


def _whole_axis(index: Index, extent: int, rows: set[Var]) -> bool:
    """Whether an index is nothing but a variable that runs inside the row, over the whole extent."""
    return any(index == variable(v) and v.extent == extent and v not in rows for v in index.variables)
