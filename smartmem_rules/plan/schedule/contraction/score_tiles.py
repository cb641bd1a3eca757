"""In which sizes a work-group computes an attention's scores, on whose rows its product waits.

With the sizes of the product, scores come in as many tiles of columns as the product has columns for, each of which
waits for its part of the keys and adds up the sums of several slices. All columns at once wait once. Where a matrix
unit's sums lie in the lanes as its left factor does, scores of which a work-group holds whole rows stay in registers:
each sub-group multiplies the columns of scores that it holds, and the sums of all are added up as those of slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.plan.kernel.model import INNER, Kernel
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.contraction.sizing import most
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, children, own_indices, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.types import register_type


def with_scores(tile: GroupTile, kernel: Kernel) -> GroupTile:
    """The tile with sizes for the scores, where the contraction has some and the tile's matrix unit takes them."""
    c = kernel.contraction
    if c is None or c.scores is None or tile.unit is None or tile.swizzled or not tile.work_group.score_columns:
        return tile
    columns, depth = largest(c.scores.n.extent), most(c.scores.k)
    passes = range(max(1, -(-columns // tile.work_group.score_columns)), columns + 1)
    fewest = next((found for one in passes if (found := list(_sizes(tile, -(-columns // one), depth)))), [])
    if not fewest:
        return tile
    if fewest[0].columns >= columns and tile.work_group.hold_scores and in_registers(kernel):
        held = [one for scores in fewest if (one := _held(tile, scores)) is not None]
        if held:
            return min(held, key=lambda one: (one.step, one.warp_rows * one.warp_columns))
    return replace(tile, scores=min(fewest, key=_order))


def _order(tile: GroupTile) -> tuple[int, int]:
    """Fewer columns come first, then fewer fragments for a sub-group to load."""
    return tile.columns, tile.warp_rows + tile.warp_columns


def _sizes(tile: GroupTile, columns: int, depth: int) -> Iterator[GroupTile]:
    """Sizes of so many columns, or a few more, by the same sub-groups."""
    unit, work_group = tile.unit, tile.work_group
    assert unit is not None
    rows, pair, deep = unit.shape[0], 2 * unit.shape[1], unit.shape[2]
    subgroups = tile.warps * tile.slices
    step = min(-(-depth // deep) * deep, work_group.score_step)
    for warp_rows in range(rows, tile.rows + 1, rows):
        across, rest = divmod(subgroups * warp_rows, tile.rows)
        if tile.rows % warp_rows or rest or not across:
            continue
        each = -(-columns // (across * pair)) * pair
        found = replace(
            tile, columns=across * each, step=step, slices=1, warp_rows=warp_rows, warp_columns=each,
            buffers=2, whole=step >= depth,
        )  # fmt: skip
        if warp_rows * each <= work_group.score_sums * unit.lanes and found.takes(unit):
            yield found


def _held(tile: GroupTile, scores: GroupTile) -> GroupTile | None:
    """The tile of a product whose left factor is scores in registers; None where its sub-groups hold too much."""
    unit = tile.unit
    assert unit is not None
    if not unit.chained or not unit.row_lanes or scores.warp_columns % unit.depth:
        return None
    if scores.warp_rows * tile.columns > tile.work_group.score_sums * unit.lanes:
        return None
    return replace(
        tile, step=scores.columns, slices=scores.columns // scores.warp_columns, warp_rows=scores.warp_rows,
        warp_columns=tile.columns, buffers=2, whole=True, held=True, scores=scores,
    )  # fmt: skip


def in_registers(kernel: Kernel) -> bool:
    """Whether what is computed of a row of scores takes each element by itself, or all of them in a reduction."""
    c = kernel.contraction
    if c is None or c.scores is None or len(c.k) != 1 or any(store.local for store in kernel.stores):
        return False
    extent, arrays = c.scores.n.extent, {INNER}
    for stage in c.stages:
        if register_type(stage.dtype) != "float32":
            return False
        if stage.axes:
            if not _along(stage.axes, extent) or not _elementwise(stage.body, arrays, stage.axes[0]):
                return False
            arrays.add(stage.name)
        elif not _of_row(stage.body, arrays, extent):
            return False
    return _along(c.k, extent) and _elementwise(c.a, arrays, c.k[0])


def _of_row(expr: Expr, arrays: set[str], extent: int) -> bool:
    """Whether a scalar is one of reductions of the row's elements, each by itself, and reads none outside of them."""
    if any(isinstance(node, Read) and node.tensor in arrays for node in _outside(expr)):
        return False
    return all(_reduced(node, arrays, extent) for node in outermost(expr))


def _along(axes: tuple[Var, ...], extent: int) -> bool:
    return len(axes) == 1 and axes[0].extent == extent


def _elementwise(expr: Expr, arrays: set[str], axis: Var) -> bool:
    """Whether an expression has no reductions, and reads arrays of the row at its own place only."""
    own = (variable(axis),)
    return not any(
        isinstance(node, Reduce)
        or (isinstance(node, Read) and node.tensor in arrays and node.indices != own)
        or any(arrays & index.gathered for index in own_indices(node))
        for node in walk(expr)
    )


def _reduced(node: Expr, arrays: set[str], extent: int) -> bool:
    return (
        isinstance(node, Reduce)
        and register_type(node.dtype) == "float32"
        and _along(node.variables, extent)
        and _elementwise(node.body, arrays, node.variables[0])
    )


def outermost(expr: Expr) -> Iterator[Reduce]:
    """The reductions of an expression that lie in no other one."""
    if isinstance(expr, Reduce):
        yield expr
        return
    for child in children(expr):
        yield from outermost(child)


def _outside(expr: Expr) -> Iterator[Expr]:
    """The nodes of an expression that lie in none of its reductions."""
    if not isinstance(expr, Reduce):
        yield expr
        for child in children(expr):
            yield from _outside(child)
