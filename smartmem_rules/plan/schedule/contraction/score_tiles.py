"""In which sizes a work-group computes an attention's scores, on whose rows its product waits.

With the sizes of the product, scores come in as many tiles of columns as the product has columns for, each of which
waits for its part of the keys and adds up the sums of several slices. All columns at once wait once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.plan.kernel.model import Contraction
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.contraction.sizing import most
from smartmem_rules.tensor.ranges import largest


def with_scores(tile: GroupTile, c: Contraction) -> GroupTile:
    """The tile with sizes for the scores, where the contraction has some and the tile's matrix unit takes them."""
    if c.scores is None or tile.unit is None or tile.swizzled or not tile.work_group.score_columns:
        return tile
    columns, depth = largest(c.scores.n.extent), most(c.scores.k)
    passes = range(max(1, -(-columns // tile.work_group.score_columns)), columns + 1)
    fewest = next((found for one in passes if (found := list(_sizes(tile, -(-columns // one), depth)))), [])
    return replace(tile, scores=min(fewest, key=_order, default=None))


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
