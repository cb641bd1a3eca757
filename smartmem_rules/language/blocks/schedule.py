"""`schedule NAME for CLASS` blocks: how the templates of codegen/ are sized, one record for each template."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language.blocks.device import DEVICE_KINDS
from smartmem_rules.language.blocks.keys import (
    BlockRecord,
    flag,
    part,
    real,
    rows_of_reals,
    rows_of_wholes,
    spaces,
    whole,
    wholes,
    word,
    words,
)
from smartmem_rules.language.blocks.matrix import ELEMENTS, OPERANDS
from smartmem_rules.language.blocks.ranges import (
    FEW,
    FEW_OR_NONE,
    FROM_ONE,
    ITEMS,
    ITEMS_OR_NONE,
    PART,
    POSITIVE,
    Range,
)
from smartmem_rules.records import dataclass

TEMPLATES = ("panel", "words", "bytes", "winograd", "group", "tile", "pointwise", "reduction", "scan")
SPACES = ("rows", "vectors", "block_rows", "tiles_per_block", "items", "places", "team")


@dataclass(frozen=True, kw_only=True)
class Schedule(BlockRecord):
    """What all schedules have."""

    kind: str = word("the devices that it is for", *DEVICE_KINDS, "any")
    memory: str = word("where the operands lie", "image", "buffer", "any")
    template: str = word(
        "the template of codegen/ that realises it",
        "panel",
        "words",
        "bytes",
        "winograd",
        "group",
        "tile",
        "pointwise",
        "reduction",
        "scan",
    )
    tuned: bool = flag("used from the level on that says `schedules tuned`")
    search: Mapping[str, tuple[int, ...]] = spaces(
        "sizes that tuning tries: which size of the template, and its values", *SPACES
    )
    extents: str = word("`fixed` for a template that cannot take open extents", "any", "fixed", default="any")

    @property
    def subject(self) -> str:
        """What stands behind `for`."""
        return self.block.subject or ""

    @property
    def takes_open_extents(self) -> bool:
        return self.extents != "fixed"


@dataclass(frozen=True, kw_only=True)
class RegisterTiles(Schedule):
    """Register tiles of a CPU's vectors; times are in products of a vector, of which a core makes some in a cycle.

    Attributes:
        lanes: floats of a vector register of the device.
        register_count: its vector registers.
        score_vectors: vectors of columns of the register tile that computes an attention's scores.
        width: elements of a vector outside of the register tiles.
        first_cache: bytes and ways of a core's first cache; empty where they are not known.
        units: cores of the device.
    """

    rows: tuple[int, ...] = wholes("rows of the register tile to choose from", within=(FEW,))
    vectors: tuple[int, ...] = wholes("vectors of columns of the register tile to choose from", within=(FEW,))
    other_registers: int = whole("vector registers that hold no sums but what is multiplied", 4)
    scratch_bytes: int = whole("bytes that one work-item keeps to itself")
    step_overhead: float = real("what a step of the reduction costs besides, in products of a vector", 0.0)
    product_latency: float = real("from one product to the next of the same sum, in products of a vector", 0.0)
    load_cost: float = real("what loading a vector or repeating an element costs, in products of a vector", 0.0)
    far_load_cost: float = real(
        "what loading a vector costs of a tile of columns that the first cache does not hold, in products of a vector",
        0.0,
    )
    line_cost: float = real(
        "a line of a row that other rows drive out of the first cache, in products of a vector", 0.0
    )
    tile_overhead: float = real("what a register tile costs besides, for each vector of its sums; the same unit", 0.0)
    item_overhead: float = real("what a work-item costs besides, in products of a vector", 0.0)
    request_steps: int = whole("most steps of the reduction for one prefetch of the next tile of weights; 0: none", 0)
    request_rows: int = whole("rows from which on the next tile of weights is prefetched", 1)
    request_blocks: int = whole("register tiles of rows over a tile of weights, above which none is prefetched", 64)
    lanes: int = 8
    register_count: int = 16
    score_vectors: int = 2
    width: int = 8
    first_cache: tuple[int, ...] = ()
    units: int = 2

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of the register tile to choose from."""
        return tuple(count * self.lanes for count in self.vectors)

    @property
    def most_sums(self) -> int:
        """Sums of a register tile that stay in registers."""
        return (self.register_count - self.other_registers) * self.lanes


@dataclass(frozen=True, kw_only=True)
class Panel(RegisterTiles):
    """Rows staged in cache, packed columns, register tiles (CPU)."""

    row_vectors: int = whole(
        "vectors of columns for a single row, and for ranges from one row on; 0: as for others", 0, within=FEW_OR_NONE
    )
    in_place_rows: int = whole("rows of a batch up to which factors that are no constants are read where they lie", 0)
    staging_share: int = whole(
        "columns are split, and rows staged again, while staging is one part in so many", 20, within=FROM_ONE
    )
    staged_operations: float = real(
        "operations on staged rows in the time of a product of a vector", 5.0, within=POSITIVE
    )
    panel_bytes: int = whole("bytes of staged rows")
    window_rows: int = whole("most neighbouring rows whose windows are computed together", 1, within=FEW)
    group_columns: int = whole("convolutions of groups with at most so many columns each are sums over windows", 0)
    items: int = whole("work-items that balance the device", 1, within=ITEMS)
    items_each: int = whole("work-items for each core of the device, where that makes more of them", 0)
    smallest_block: int = whole("rows below which columns are split instead", 1, within=FROM_ONE)


@dataclass(frozen=True, kw_only=True)
class FewBitWeights(Schedule):
    """Right factors of the panel template that stay integers of few bits: register tiles unpack them (CPU)."""

    bits: tuple[int, ...] = wholes(
        "bits of an integer in a word of 32, the fewest first", within=(Range(only=(1, 2, 4, 8, 16), usual=4),)
    )
    elements: int = whole("weights below which a factor is unpacked when the plan is made", 1)
    ahead: int = whole("bytes by which a register tile of one row requests weights before it reads them", 0)


@dataclass(frozen=True, kw_only=True)
class ByteProducts(Schedule):
    """Products of integers of 8 bits by the panel template: four of them in a word, sums of 32 bits (CPU)."""

    depth: int = whole("steps of the reduction at most, of which a work-item keeps whole rows", 1, within=FROM_ONE)
    right_bytes: int = whole("bytes of a right factor that is no constant, which a work-item packs, at most", 0)


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FilteredData:
    """Which outputs of a tile are filtered, by the magnitudes of the data; the others are summed directly."""

    ordinary: float = real(
        "a tile whose data has no magnitude above this is filtered without a further look", within=POSITIVE
    )
    window_part: float = real(
        "in other tiles an output is filtered whose window holds this part of the tile's greatest magnitude",
        within=PART,
    )
    largest: float = real(
        "tiles with a greater magnitude are not filtered; no sum of products with weights of at most 2^64 overflows",
        within=POSITIVE,
    )


@dataclass(frozen=True, kw_only=True)
class Winograd(RegisterTiles):
    """Convolutions by Winograd's minimal filtering; the matrices of F(outputs x outputs, taps x taps)."""

    input: Matrix = rows_of_reals("a row of the input's transform B^T")
    weights: Matrix = rows_of_reals("a row of the weights' transform G")
    weights_over: float = real("the divisor of the rows of `weights`", 1.0, within=POSITIVE)
    output: Matrix = rows_of_reals("a row of the output's transform A^T")
    pays_below: float = real("filtering is taken below this part of the direct convolution's modelled time", 0.9)
    transform_step: float = real("what an operation of a transform costs, in products of a vector", 0.0)
    weights_byte: float = real("what a byte of the right factor costs, in the same unit", 0.0)
    data: FilteredData = part(FilteredData)


@dataclass(frozen=True, kw_only=True)
class GroupCycles:
    """Cycles of a GPU's unit; where `sums_per_cycle` is absent, the device's roofline decides."""

    turn_cycles: float = real("cycles of a K step at least, from the request of a tile's elements to their use", 0.0)
    shared_turn_cycles: float = real("cycles that a K step of a resident work-group takes from the others", 0.0)
    group_cycles: float = real("cycles of a work-group besides its K steps", 0.0)
    sums_per_cycle: float = real("products that a unit adds in a cycle", 0.0)
    loads_per_cycle: float = real("elements that a unit loads in a cycle", 0.0)
    meetings_per_cycle: float = real("split-K: partial sums added in a cycle through global memory", 0.0)
    row_cycles: float = real("cycles that a member of a team takes for an element that the stages of its row load", 0.0)
    score_cycles: float = real(
        "the same for an element of an attention's scores, or of what is made of them, in local memory", 0.0
    )
    finish_cycles: float = real("cycles that a work-item takes for a sum in the epilogue", 0.0)
    finished_per_cycle: float = real("sums at most that the work-groups of a unit finish in a cycle", 0.0)
    looped_cycles: float = real(
        "cycles of a turn of a loop in which a work-item sums what an element of the left factor is computed from; "
        "loops that are unrolled count by their operations",
        0.0,
    )
    resident_subgroups: float = real("sub-groups that a unit keeps busy", 0.0)
    order_factor: float = real("`order_factor` of devices, for these kernels; 0: the device's", 0.0)


@dataclass(frozen=True, kw_only=True)
class WorkGroup:
    """How tiles lie in local memory, and who makes what their rows need."""

    padding: tuple[int, ...] = wholes(
        "floats behind each row of a tile of the left factor, of the right factor and of the sums, so that "
        "neighbouring work-items meet different banks of local memory",
        (4, 8, 4),
        3,
        3,
    )
    row_team: int = whole(
        "work-items that make what a row needs, in turn, where few of a tile's would share a row", 8, within=ITEMS
    )
    smallest_row_team: int = whole(
        "so many of a tile's work-items that share a row need no such teams", 4, within=ITEMS
    )
    score_columns: int = whole(
        "columns of an attention's scores that a work-group computes on a matrix unit at once, at most; without it, "
        "those of the tile, with its slices",
        0,
        within=ITEMS_OR_NONE,
    )
    hold_scores: bool = flag(
        "whether scores of which a work-group computes whole rows stay in registers and are the left factor there",
        False,
    )
    score_step: int = whole("places of their reduction that lie in local memory at once, at most", 128, within=ITEMS)
    score_sums: int = whole("such sums that a work-item holds, at most", 64, within=ITEMS)


@dataclass(frozen=True, kw_only=True)
class Group(Schedule):
    """Tiles in local memory that a work-group shares (GPU).

    Attributes:
        subgroup: work-items of the device's sub-groups.
    """

    factors: tuple[str, ...] = words(
        "the types of both factors' elements in local memory, one of which a matrix unit of the device multiplies; "
        "float32, which is alone, is multiplied without one too",
        *ELEMENTS,
        default=("float32",),
    )
    operands: str = word(
        "where the matrix unit reads its factors: a device may have one unit of either kind",
        *OPERANDS,
        default="registers",
    )
    splits: tuple[int, ...] = wholes(
        "work-groups that may share one reduction (split-K), to choose from", (1,), within=(ITEMS,)
    )
    tile: tuple[tuple[int, ...], ...] = rows_of_wholes(
        "sizes of a work-group to choose from: rows, columns, K step, slices of the step (slice-K), rows and columns "
        "of each sub-group, steps in local memory at once",
        7,
        7,
        within=(ITEMS,),
    )
    work_group: WorkGroup = part(WorkGroup)
    cycles: GroupCycles = part(GroupCycles)
    subgroup: int = 32

    @property
    def of_halves(self) -> bool:
        """Whether its tiles are of narrower elements than float32, and only for matrix units."""
        return "float32" not in self.factors


@dataclass(frozen=True, kw_only=True)
class Tile(Schedule):
    """A register tile that every device and both memories take."""

    rows: tuple[int, ...] = wholes("rows of the register tile", (1,), within=(FEW,))
    columns: tuple[int, ...] = wholes("columns of the register tile, in vectors of four", (4,), within=(FEW,))
    group: int = whole("work-items of a work-group on GPUs", 64, within=ITEMS)
    takes_below: float = real(
        "beside tiles in local memory: taken below this part of their modelled time, because registers ask less of "
        "what all units share",
        0.8,
    )


@dataclass(frozen=True, kw_only=True)
class Elementwise(Schedule):
    """Elementwise and window kernels: how they share out their elements."""

    items: int = whole(
        "work-items among which rows of the output are divided; 0 where work-items take vectors of it",
        0,
        within=ITEMS_OR_NONE,
    )
    group: int = whole("work-items of a work-group that share out vectors of the output", 64, within=ITEMS)
    places: int = whole("vectors of the output that a work-item computes", 1, within=ITEMS)
    window_rows: int = whole("most neighbouring rows whose windows a work-item computes together", 1, within=FEW)


@dataclass(frozen=True, kw_only=True)
class Scans(Elementwise):
    """Recurrences: on GPUs a work-group shares the elements of each step."""


@dataclass(frozen=True, kw_only=True)
class Rows(Elementwise):
    """Row reductions: a work-item or a team of them takes a row."""

    team: tuple[int, ...] = wholes("work-items that may share a row, to choose from", (1,), within=(ITEMS,))
    team_group: int = whole("work-items of a work-group whose teams compute rows", 64, within=ITEMS)
    vectors: int = whole("vectors of a row for each member of a team", 1, within=FEW)
    few_rows: int = whole(
        "use one vector for each member when rows < work-items of all units / `few_rows`", 8, within=FROM_ONE
    )
    alone_most: int = whole(
        "elements that a work-item sums alone where a vector holds several neighbouring rows and a work-group for each "
        "unit of the device has more work-items than there are vectors; teams share longer rows. 0: no team does",
        0,
    )


CONTRACTIONS: Mapping[str, type[Schedule]] = {
    "panel": Panel,
    "words": FewBitWeights,
    "bytes": ByteProducts,
    "winograd": Winograd,
    "group": Group,
    "tile": Tile,
}
"""The record of a `for contraction` block, by its template."""
CLASSES: Mapping[str, type[Schedule]] = {
    "pointwise": Elementwise,
    "window": Elementwise,
    "reduction": Rows,
    "scan": Scans,
}
"""The record of the other blocks, by what they are for."""
