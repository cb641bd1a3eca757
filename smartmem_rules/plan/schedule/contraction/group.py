"""Sizes of contractions on GPUs with local memory: which tiles fit, and their modelled times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Group, GroupCycles
from smartmem_rules.plan.kernel.model import Contraction, Kernel
from smartmem_rules.plan.kernel.row_arrays import row_bytes
from smartmem_rules.plan.schedule.contraction.sizing import count
from smartmem_rules.tensor.expr import Reduce, walk
from smartmem_rules.tensor.ranges import largest

PADDING_LEFT = 4
PADDING_RIGHT = 8
PADDING_SUMS = 4
"""Floats behind each row of a tile in local memory, so that neighbouring work-items meet different banks."""
SUBGROUP = 32
SMALLEST_TEAM = 4
TEAM = 8
"""Work-items that read a row together: eight texels of halves fill a line."""


@dataclass(frozen=True)
class GroupTile:
    """One choice of sizes for a work-group: see `tile` in the schedule blocks.

    Attributes:
        rows, columns: sums of a work-group.
        step: places of the reduction that lie in local memory at a time.
        slices: parts of a step that different sub-groups sum.
        warp_rows, warp_columns: sums of a sub-group of 32 work-items.
        buffers: 2 where the next step is written beside the present one, 1 where it takes its place.
        left_type, right_type: of the factors' elements in local memory.
    """

    rows: int
    columns: int
    step: int
    slices: int
    warp_rows: int
    warp_columns: int
    buffers: int
    left_type: str = "float"
    right_type: str = "float"

    @staticmethod
    def of(sizes: Sequence[int]) -> GroupTile:
        """The tile of a schedule block's entry."""
        rows, columns, step, slices, warp_rows, warp_columns, buffers = sizes
        return GroupTile(rows, columns, step, slices, warp_rows, warp_columns, buffers)

    @property
    def direct(self) -> bool:
        """Whether sums stay in registers: nothing has to meet."""
        return self.slices == 1

    @property
    def warps(self) -> int:
        """Sub-groups of one slice."""
        return (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    @property
    def threads(self) -> int:
        return SUBGROUP * self.warps * self.slices

    @property
    def left_stride(self) -> int:
        return self.step + PADDING_LEFT

    @property
    def right_stride(self) -> int:
        return self.columns + PADDING_RIGHT

    @property
    def sum_stride(self) -> int:
        return self.columns + PADDING_SUMS

    @property
    def tile(self) -> int:
        """Floats of one pair of tiles."""
        return self.rows * self.left_stride + self.step * self.right_stride

    @property
    def memory(self) -> int:
        """Floats of local memory: the tiles, later the sums of all slices."""
        if self.direct:
            left, right = self.element_bytes
            return -(-self.buffers * (self.rows * self.left_stride * left + self.step * self.right_stride * right) // 4)
        return max(self.buffers * self.tile, self.slices * self.rows * self.sum_stride)

    @property
    def element_bytes(self) -> tuple[int, int]:
        """Of the left and the right factor in local memory."""
        left, right = (2 if kind == "half" else 4 for kind in (self.left_type, self.right_type))
        return left, right

    @property
    def team(self) -> int:
        """Work-items that make what one row needs; with few for each row, teams take several rows in turn."""
        each = self.threads // self.rows
        return each if each >= SMALLEST_TEAM or not self.direct else min(TEAM, self.threads)

    def sum(self, number: int) -> str:
        """C text of a work-item's vector of sums."""
        return f"c[{number}]" if self.direct else f"c{number}"

    @property
    def sums(self) -> int:
        """Vectors of four sums that a work-item holds."""
        return self.warp_rows * self.warp_columns // (4 * SUBGROUP)


@dataclass(frozen=True)
class GemmShape:
    """What a contraction asks of a work-group.

    Attributes:
        columns: the extents of all right factors.
        row_bytes: local memory that a row of a tile takes besides the tiles.
        inner: places of the reduction of the scores times their columns, 0 without scores.
        element: bytes of a stored element.
        taps: elements that an element of the left factor is computed from.
    """

    batch: int
    m: int
    columns: tuple[int, ...]
    k: int
    row_bytes: int = 0
    inner: int = 0
    element: int = 4
    taps: int = 1

    @property
    def most(self) -> GemmShape:
        """At the greatest extents of open dimensions: what sizes are chosen for."""
        sizes = (largest(self.batch), largest(self.m), tuple(map(largest, self.columns)), largest(self.k))
        return GemmShape(*sizes, self.row_bytes, largest(self.inner), self.element, largest(self.taps))


def gemm_shape_of(kernel: Kernel, c: Contraction, element: int = 4) -> GemmShape:
    """What a contraction asks of a work-group, at the greatest extents of open dimensions.

    Args:
        element: bytes of a stored element.
    """
    columns = (c.n.extent, *(part.n.extent for part in kernel.parts))
    inner = 0 if c.scores is None else count(c.scores.k) * c.scores.n.extent
    taps = max((count(node.variables) for node in walk(c.a) if isinstance(node, Reduce)), default=1)
    return GemmShape(count(c.batch), count(c.m), columns, count(c.k), row_bytes(c), inner, element, taps).most


@dataclass(frozen=True)
class GroupChoice:
    """A tile, and over how many work-groups each reduction is split."""

    tile: GroupTile
    splits: int

    def sizes(self) -> dict[str, int]:
        """As schedules and the database of tuned sizes hold them."""
        sizes = {k: v for k, v in asdict(self.tile).items() if isinstance(v, int)}
        return {**sizes, "splits": self.splits}


def tiles_of(schedule: Group) -> tuple[GroupTile, ...]:
    """The tiles that a schedule block lists."""
    return tuple(map(GroupTile.of, schedule.tile))


def fitting(tiles: Sequence[GroupTile], demand: GemmShape, local_memory: int) -> list[GroupTile]:
    """The tiles that local memory has room for, beside what their rows need."""
    found = [t for t in tiles if 4 * (t.memory + t.threads) + t.rows * demand.row_bytes <= local_memory]
    # a team of work-items finishes each row
    return [t for t in found if t.team > 1] if demand.row_bytes else found


def rank_groups(
    tiles: Sequence[GroupTile],
    splits: Sequence[int],
    cycles: GroupCycles,
    demand: GemmShape,
    device: Device,
) -> list[GroupChoice]:
    """All choices that fit the local memory, the fastest by `group_cost` first."""
    choices = [
        GroupChoice(t, s)
        for t in fitting(tiles, demand, device.memory.local_memory)
        for s in splits
        if s == 1 or (not demand.inner and s * t.step < demand.k)
    ]
    return sorted(choices, key=lambda c: group_cost(c, cycles, demand, device.compute.units))


def group_cost(choice: GroupChoice, cycles: GroupCycles, demand: GemmShape, units: int) -> float:
    """Cycles of a contraction: waves of work-groups, each bound by its sums, its loads or their latency."""
    tile, splits = choice.tile, choice.splits
    tiles = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
    groups = tiles * splits
    resident = min(max(1.0, cycles.resident_subgroups // (tile.warps * tile.slices)), math.ceil(groups / units))
    steps = math.ceil(demand.k / tile.step)
    turns = math.ceil(steps / splits) + math.ceil(demand.inner / (tile.step * tile.columns))
    sums = tile.rows * tile.columns * tile.step / cycles.sums_per_cycle
    loads = (tile.rows + tile.columns) * tile.step / cycles.loads_per_cycle
    turn = max(resident * sums, resident * loads, cycles.turn_cycles) + cycles.shared_turn_cycles * resident
    meeting = splits * tile.rows * tile.columns / cycles.meetings_per_cycle if splits > 1 else 0
    return math.ceil(groups / (units * resident)) * (turns * turn + cycles.group_cycles + meeting)
