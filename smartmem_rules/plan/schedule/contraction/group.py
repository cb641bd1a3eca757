"""Sizes of contractions on GPUs with local memory: which tiles fit, and their modelled times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.blocks.schedule import Group, GroupCycles, WorkGroup
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape
from smartmem_rules.records import dataclass

FLOAT_BYTES = 4
VECTOR = 4
"""Elements of a tile that a work-item makes at once."""
ALIGNMENT = 1024
"""Bytes to which tiles that a matrix unit reads are aligned."""
_SIZES = ("rows", "columns", "step", "slices", "warp_rows", "warp_columns", "buffers")


@dataclass(frozen=True, kw_only=True)
class GroupTile:
    """One choice of sizes for a work-group: see `tile` in the schedule blocks.

    Attributes:
        rows, columns: sums of a work-group.
        step: places of the reduction that lie in local memory at a time.
        slices: parts of a step that different sub-groups sum.
        warp_rows, warp_columns: sums of a sub-group.
        buffers: steps that lie in local memory at once; with 1 the next step takes the place of the present one.
        left_type, right_type: of the factors' elements in local memory.
        unit: the matrix unit that multiplies them, None for ordinary arithmetic.
        subgroup: work-items of a sub-group where no matrix unit multiplies.
        work_group: what the schedule's block says of all its tiles.
        whole: whether one step is all of the reduction, so that no other one needs room.
        scores: the sizes in which the same work-group computes an attention's scores; None: in these.
        held: whether the scores stay in registers, and become the left factor there: a step is all of the reduction,
            of which each slice has the columns of scores that its sub-groups hold.
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
    unit: Matrix | None = None
    subgroup: int = 32
    work_group: WorkGroup = field(default_factory=WorkGroup)
    whole: bool = False
    scores: GroupTile | None = None
    held: bool = False

    @staticmethod
    def of(sizes: Sequence[int], subgroup: int, work_group: WorkGroup) -> GroupTile:
        """The tile of a schedule block's entry."""
        rows, columns, step, slices, warp_rows, warp_columns, buffers = sizes
        return GroupTile(
            rows=rows,
            columns=columns,
            step=step,
            slices=slices,
            warp_rows=warp_rows,
            warp_columns=warp_columns,
            buffers=buffers,
            subgroup=subgroup,
            work_group=work_group,
        )

    def numbers(self) -> dict[str, int]:
        """The sizes, as schedules and the database of tuned sizes hold them."""
        return {name: getattr(self, name) for name in _SIZES}

    @property
    def direct(self) -> bool:
        """Whether sums stay in registers: nothing has to meet."""
        return self.slices == 1 and self.unit is None

    @property
    def lanes(self) -> int:
        """Work-items of a sub-group."""
        return self.subgroup if self.unit is None else self.unit.lanes

    @property
    def warps(self) -> int:
        """Sub-groups of one slice."""
        return (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    @property
    def threads(self) -> int:
        return self.lanes * self.warps * self.slices

    @property
    def swizzled(self) -> bool:
        """Whether the matrix unit reads tiles as they lie: rows of 128 bytes, without padding between."""
        return self.unit is not None and self.unit.in_local_memory

    @property
    def left_stride(self) -> int:
        return self.step + self._padding(self.work_group.padding[0])

    @property
    def right_stride(self) -> int:
        return self.columns + self._padding(self.work_group.padding[1])

    def _padding(self, floats: int) -> int:
        """Elements behind a row of a tile."""
        if self.unit is None or self.unit.element_bytes == FLOAT_BYTES:
            return floats
        if self.swizzled:
            return 0
        return self.unit.padding // self.unit.element_bytes

    @property
    def left_size(self) -> int:
        """Elements of a tile of the left factor."""
        return 0 if self.held else self.rows * self.left_stride

    @property
    def right_size(self) -> int:
        """Elements of a tile of the right factor; with a matrix unit its rows may be its columns as well."""
        across = self.step * self.right_stride
        return across if self.unit is None else max(across, self.columns * self.left_stride)

    @property
    def sum_stride(self) -> int:
        return self.columns + self.work_group.padding[2]

    @property
    def tile(self) -> int:
        """Floats of one pair of tiles."""
        size = FLOAT_BYTES if self.unit is None else self.unit.element_bytes
        return -(-(self.left_size + self.right_size) * size // FLOAT_BYTES)

    @property
    def memory(self) -> int:
        """Floats of local memory: the tiles, later the sums of all slices."""
        if self.direct:
            left, right = self.element_bytes
            return -(-self.buffers * (self.rows * self.left_stride * left + self.step * self.right_stride * right) // 4)
        floats = self._tiles_or_sums
        if self.held and self.scores is not None:
            floats = max(floats, self.scores_place + self.scores.tile)
        elif self.scores is not None:
            floats = max(floats, self.scores._tiles_or_sums)
        return floats + (self._exchange + ALIGNMENT * self.swizzled) // FLOAT_BYTES

    @property
    def _tiles_or_sums(self) -> int:
        return max(self.kept * self.tile, self.slices * self.rows * self.sum_stride)

    @property
    def scores_place(self) -> int:
        """The float of local memory at which the tiles of scores begin that are held: the right factor lies before."""
        return -(-self.tile // VECTOR) * VECTOR

    def row_memory(self, row_bytes: int) -> int:
        """Bytes of local memory that the rows take besides the tiles.

        Args:
            row_bytes: of a row whose stages leave arrays in local memory.
        """
        if not row_bytes:
            return 0
        if self.held and self.unit is not None:
            return FLOAT_BYTES * self.rows * self.slices * self.unit.row_lanes
        return FLOAT_BYTES * self.threads + self.rows * row_bytes

    @property
    def kept(self) -> int:
        """Steps for which local memory has room."""
        return 1 if self.whole else self.buffers

    @property
    def _exchange(self) -> int:
        """Bytes through which the lanes of all sub-groups exchange fragments."""
        return 0 if self.unit is None else self.warps * self.slices * self.unit.exchange

    @property
    def exchange_place(self) -> int:
        """The float of local memory at which they begin."""
        return self.memory - self._exchange // FLOAT_BYTES

    @property
    def element_bytes(self) -> tuple[int, int]:
        """Of the left and the right factor in local memory."""
        left, right = (2 if kind == "half" else 4 for kind in (self.left_type, self.right_type))
        return left, right

    @property
    def row_items(self) -> int:
        """Work-items for each row of the tile."""
        return self.threads // self.rows

    @property
    def team(self) -> int:
        """Work-items that make what one row needs; with few for each row, teams take several rows in turn."""
        each = self.row_items
        work_group = self.work_group
        if each >= work_group.smallest_row_team or not (self.direct or self.swizzled):
            return each
        return min(work_group.row_team, self.threads)

    def left_place(self, own: str, k: str) -> str:
        """C text of an element's place in the tile of the left factor, given the texts of its row and its depth."""
        return f"{self._unit_name}_at({own}, {k})" if self.swizzled else f"({own}) * {self.left_stride} + {k}"

    def right_place(self, own: str, k: str, turned: bool) -> str:
        """The same of the right factor, given the texts of its column and its depth.

        Args:
            turned: whether its columns are rows of the tile.
        """
        if turned:
            return self.left_place(own, k)
        if self.swizzled:
            return f"{self._unit_name}_across({k}, {own}, {self.step})"
        return f"({k}) * {self.right_stride} + {own}"

    @property
    def _unit_name(self) -> str:
        return "" if self.unit is None else self.unit.name

    def ahead(self, complete: bool) -> int:
        """Turns for which copies are under way before they are used.

        Args:
            complete: whether each turn's products are complete before the next one.
        """
        return self.buffers - 1 if complete or not self.overlaps else self.buffers - 2

    @property
    def overlaps(self) -> bool:
        """Whether products of a turn run on in the next one, whose copies then go elsewhere."""
        return self.swizzled and self.buffers > 3

    def sum(self, number: int, name: str = "c") -> str:
        """C text of a work-item's vector of sums."""
        return f"{name}[{number}]" if self.direct else f"{name}{number}"

    @property
    def sums(self) -> int:
        """Vectors of four sums that a work-item holds."""
        return self.warp_rows * self.warp_columns // (4 * self.subgroup)

    def takes(self, unit: Matrix) -> bool:
        """Whether a matrix unit's products fill the sub-groups' tiles, its right fragments in pairs."""
        rows, columns, depth = unit.shape
        if unit.in_local_memory:
            fills = self.warp_rows == rows and self.warp_columns in unit.widths and self.warp_columns % unit.row == 0
            return fills and self.step == unit.row and self.step // self.slices % depth == 0 and self.buffers > 1
        whole = self.warp_rows % rows == 0 and self.warp_columns % (2 * columns) == 0
        return whole and self.step // self.slices % depth == 0


@dataclass(frozen=True)
class GroupChoice:
    """A tile, and over how many work-groups each reduction is split."""

    tile: GroupTile
    splits: int

    def sizes(self) -> dict[str, int]:
        """The tile's, and the splits."""
        return {**self.tile.numbers(), "splits": self.splits}


def tiles_of(schedule: Group) -> tuple[GroupTile, ...]:
    """The tiles that a schedule block lists."""
    return tuple(GroupTile.of(sizes, schedule.subgroup, schedule.work_group) for sizes in schedule.tile)


def fitting(tiles: Sequence[GroupTile], demand: GemmShape, local_memory: int) -> list[GroupTile]:
    """The tiles that so many bytes of local memory have room for, beside what their rows need."""
    found = [t for t in tiles if _local_bytes(t, demand) <= local_memory]
    # a team of work-items finishes each row
    return [t for t in found if t.team > 1] if demand.row_bytes else found


def _local_bytes(tile: GroupTile, demand: GemmShape) -> int:
    return FLOAT_BYTES * tile.memory + max(FLOAT_BYTES * tile.threads, tile.row_memory(demand.row_bytes))


def rank_groups(
    tiles: Sequence[GroupTile],
    splits: Sequence[int],
    cycles: GroupCycles,
    demand: GemmShape,
    device: Device,
) -> list[GroupChoice]:
    """All choices that fit the local memory, the fastest by `group_cost` first."""
    memory = device.memory
    narrow = any(t.unit is not None and t.unit.element_bytes < FLOAT_BYTES for t in tiles)
    choices = [
        GroupChoice(t, s)
        for t in fitting(tiles, demand, memory.of_arrays if narrow else memory.local_memory)
        for s in splits
        if s == 1 or (not demand.inner and s * t.step < demand.k and _all_work(s, math.ceil(demand.k / t.step)))
    ]
    return sorted(choices, key=lambda c: group_cost(c, cycles, demand, device))


def _all_work(splits: int, turns: int) -> bool:
    """Whether each work-group of a split-K reduction has a K step: 4 that share 6 steps have 2, 2, 2 and none."""
    return (splits - 1) * math.ceil(turns / splits) < turns


def group_cost(
    choice: GroupChoice, cycles: GroupCycles, demand: GemmShape, device: Device, most: float = math.inf
) -> float:
    """Cycles of a contraction: waves of work-groups, each bound by its sums, its loads or their latency.

    Args:
        most: work-groups that a unit runs at once at most, for another reason than local memory.
    """
    tile, splits, units = choice.tile, choice.splits, device.compute.units
    tiles = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
    groups = tiles * splits
    resident = min(max(1.0, cycles.resident_subgroups // (tile.warps * tile.slices)), math.ceil(groups / units))
    if device.memory.unit_memory:
        resident = min(resident, max(1, device.memory.unit_memory // _local_bytes(tile, demand)), most)
    steps = math.ceil(demand.k / tile.step)
    steps_each = math.ceil(steps / splits)
    # copies are under way for as many turns as lie in local memory
    latency = cycles.turn_cycles / (tile.buffers - 1 if demand.streamed and tile.buffers > 1 else 1)
    products = steps_each * _turn(tile, cycles, resident, latency)
    if tile.scores is None:
        products += math.ceil(demand.inner / (tile.step * tile.columns)) * _turn(tile, cycles, resident, latency)
    else:
        # nothing is under way for the next columns of scores while these are multiplied
        turns = math.ceil(demand.inner / (tile.scores.step * tile.scores.columns))
        products += turns * _turn(tile.scores, cycles, resident, cycles.turn_cycles)
    meeting = splits * tile.rows * tile.columns / cycles.meetings_per_cycle if splits > 1 else 0
    arrays = demand.score_loads * (cycles.row_cycles if tile.held else cycles.score_cycles)
    rows = (cycles.row_cycles * demand.row_loads + arrays) / max(1, tile.row_items)
    made = steps_each * _looped(tile, cycles, demand, device)
    group = _besides_turns(tile, cycles, resident)
    return math.ceil(groups / (units * resident)) * (products + group + meeting + rows + made)


def _besides_turns(tile: GroupTile, cycles: GroupCycles, resident: float) -> float:
    """Cycles of a work-group's first loads and of its epilogue.

    Turns of the epilogue wait for what they read, or for the epilogues of other work-groups of the unit. Each sum is
    added over the slices first.
    """
    sums = tile.rows * tile.columns
    alone = cycles.group_cycles + cycles.finish_cycles * sums * tile.slices / tile.threads
    return max(alone, resident * sums / cycles.finished_per_cycle) if cycles.finished_per_cycle else alone


def _turn(tile: GroupTile, cycles: GroupCycles, resident: float, latency: float) -> float:
    """Cycles of a K step, in which so many work-groups share a unit."""
    sums = tile.rows * tile.columns * tile.step / cycles.sums_per_cycle
    loads = (tile.rows + tile.columns) * tile.step / cycles.loads_per_cycle
    return max(resident * sums, resident * loads, latency) + cycles.shared_turn_cycles * resident


def _looped(tile: GroupTile, cycles: GroupCycles, demand: GemmShape, device: Device) -> float:
    """Cycles in which a work-item makes its elements of a left factor's tile, where loops go through what they take."""
    if demand.longest_loop <= device.text.unroll:
        return 0.0
    vectors = math.ceil(tile.rows * tile.step / (VECTOR * tile.threads))
    return vectors * demand.taps * cycles.looped_cycles
