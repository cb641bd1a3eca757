"""The resources that a kernel needs: scratch memory, arithmetic, bytes of packed factors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from smartmem_rules.language.blocks.schedule import Panel, RegisterTiles, Schedule
from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.kernel.model import Contraction, Kernel
from smartmem_rules.plan.kernel.operations import steps
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, tensors_read
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest, smallest


def panel_of(schedules: Iterable[Schedule]) -> Panel | None:
    """The first schedule of the panel template, None where the device's level admits none."""
    return next((s for s in schedules if isinstance(s, Panel)), None)


@dataclass(frozen=True)
class Filter:
    """What a convolution demands where whole rows of tiles are filtered (`winograd`).

    Attributes:
        blocks: scalar operations that take as long, by the rows of a work-item's block; others cannot be filtered.
        right_bytes: bytes of the transformed weights.
    """

    blocks: Mapping[int, float]
    right_bytes: int


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The demands of a kernel whose work-items own whole rows.

    Attributes:
        most: rows for which a work-item has scratch memory.
        constant: whether all right factors were packed before.
        right_bytes: bytes of the right factors of one batch.
        row_bytes: from one row of the left factor to the next; 0 where there is none.
        operations: scalar operations of the whole kernel.
        filters: other ways to compute it, for certain blocks of rows.
    """

    batch: tuple[Var, ...]
    m: tuple[Var, ...]
    most: int
    constant: bool
    right_bytes: int
    operations: int
    row_bytes: int = 0
    filters: tuple[Filter, ...] = ()

    def takes(self, block: int) -> bool:
        """Whether a work-item can own so many rows."""
        return block <= self.most or any(block in found.blocks for found in self.filters)

    @cached_property
    def batch_count(self) -> int:
        return most(self.batch)

    @cached_property
    def m_count(self) -> int:
        return most(self.m)


LINE_FLOATS = 16
"""Floats of a cache line."""
UNBOUNDED = 1 << 30
"""Rows of a kernel that keeps nothing of them."""


def resources_of(
    kernel: Kernel, s: Panel, constants: Collection[str], block_rows: int | None = None
) -> Resources | None:
    """None for kernels whose work-items do not own rows, or that the schedule cannot realise.

    Args:
        block_rows: rows of a work-item, where the kernel's launch decides that.
    """
    c = kernel.contraction
    if c is None:
        if kernel.form != "reduction":
            return None
        fixed = sum(4 * most(stage.axes) for stage in kernel.stages)
        return (
            Resources(
                batch=(), m=kernel.axes, most=UNBOUNDED, constant=True, right_bytes=0, operations=kernel.operations
            )
            if fixed <= s.scratch_bytes
            else None
        )
    if c.scores is not None:
        return None
    factors = right_factors(kernel)
    constant = all(tensors_read(b) and is_constant(b, constants) for _, b in factors)
    rows = most_rows(kernel, c, s, constant, panel_columns(kernel, s, block_rows))
    if rows < 1:
        return None
    right = 4 * steps(c) * sum(largest(n.extent) for n, _ in factors)
    return Resources(
        batch=c.batch,
        m=c.m,
        most=rows,
        constant=constant,
        right_bytes=right,
        operations=kernel.operations,
        row_bytes=row_bytes(c),
    )


def row_bytes(c: Contraction) -> int:
    """Bytes from one row of the left factor to the next: those of a row, as it is staged and mostly lies in memory."""
    return 4 * steps(c)


def register_step(s: RegisterTiles, rows: int, columns: int, row_bytes: int = 0) -> float:
    """The time of a step of the reduction for a register block, in products of a vector.

    Sums wait for the products before them, products for their turn, and all for the loads of both factors. The tile of
    columns comes from the second cache where the first does not hold it: all register tiles of rows go through all of
    it. Where the rows drive each other out of the first cache, lines of rows come from the next one.

    Args:
        row_bytes: from one row of the left factor to the next, which is the reduction's length; 0 where the caches need
            not be looked at.
    """
    vectors = columns / s.lanes
    far = bool(s.first_cache) and row_bytes * columns > s.first_cache[0]
    loads = s.load_cost * rows + max(s.load_cost, s.far_load_cost if far else 0.0) * vectors
    step = max(s.product_latency, rows * vectors, loads) + s.step_overhead
    return step + s.line_cost * _driven_out(s, rows, row_bytes) / LINE_FLOATS


def _driven_out(s: RegisterTiles, rows: int, row_bytes: int) -> int:
    """The rows beyond those whose lines the first cache holds at once.

    A set of the cache takes the lines whose addresses differ by multiples of a way's bytes, one line in each way. All
    rows of 1,024 floats meet in one set at each step.
    """
    if not s.first_cache or not row_bytes:
        return 0
    size, ways = s.first_cache
    way = size // ways
    sets = way // math.gcd(way, row_bytes)
    return max(0, rows - sets * ways)


def register_rows(s: RegisterTiles, block: int, columns: int, row_bytes: int = 0) -> tuple[int, int, float]:
    """The register block for so many rows, the rows that are left for a smaller one, and the time of a step of all.

    Args:
        row_bytes: see `register_step`.
    """

    def time(rows: int) -> float:
        full, tail = divmod(block, rows)
        steps = full * register_step(s, rows, columns, row_bytes)
        return steps + register_step(s, tail, columns, row_bytes) if tail else steps

    rows = min((r for r in _rows(s, columns) if r <= block), key=lambda r: (time(r), -r), default=min(s.rows))
    return rows, block % rows, time(rows)


def rows_as_at_peak(s: RegisterTiles, block: int, row_bytes: int = 0) -> float:
    """How many rows take as long in register blocks of the best size as these do."""
    return min(register_rows(s, block, c, row_bytes)[2] / c for c in s.columns) / least_step(s)


def least_step(s: RegisterTiles) -> float:
    """The time of a step for each sum of the best register block."""
    return min(register_step(s, r, c) / (r * c) for c in s.columns for r in _rows(s, c))


def _rows(s: RegisterTiles, columns: int) -> list[int]:
    """The rows of register blocks with so many columns."""
    return [r for r in s.rows if r * columns <= s.most_sums] or [min(s.rows)]


def requests_ahead(s: RegisterTiles, k: int, columns: int, blocks: int) -> tuple[int, int]:
    """Steps of the reduction for each request of lines of the right factor's next tile, and lines at a time.

    Both are 0 where nothing is requested.

    Args:
        blocks: register tiles of rows over one tile of columns, which share its lines.
    """
    if is_symbolic(k) or is_symbolic(blocks) or not s.request_steps or blocks > s.request_blocks:
        return 0, 0
    most_steps = min(s.request_steps, blocks * LINE_FLOATS // columns)
    steps = max((steps for steps in range(1, most_steps + 1) if k % steps == 0), default=1)
    return steps, -(-steps * columns // (LINE_FLOATS * blocks))


def right_factors(kernel: Kernel) -> list[tuple[Var, Expr]]:
    """The columns and right factors of a contraction and of those beside it."""
    c = kernel.contraction
    assert c is not None
    return [(c.n, c.b), *((part.n, part.b) for part in kernel.parts)]


def panel_columns(kernel: Kernel, s: Panel, block_rows: int | None = None) -> int:
    """Columns of the register block: wide ones, unless too much of the last one would be wasted.

    Args:
        block_rows: rows of a work-item, where the kernel's launch decides that.
    """
    c = kernel.contraction
    # plans of one row and of ranges from one on then pack weights alike, and can share them
    if c is not None and s.row_vectors and smallest(count(c.m)) == 1:
        return s.row_vectors * s.lanes
    extents = [largest(n.extent) for n, _ in right_factors(kernel)]
    bytes_of_row = 0 if c is None else row_bytes(c)

    def time(columns: int) -> float:
        tiles = sum(-(-n // columns) for n in extents)
        if block_rows is not None:
            return tiles * register_rows(s, block_rows, columns, bytes_of_row)[2]
        return tiles * min(register_step(s, r, columns, bytes_of_row) / r for r in _rows(s, columns))

    return min(s.columns, key=lambda columns: (round(time(columns), 6), s.columns.index(columns)))


def most_rows(kernel: Kernel, c: Contraction, s: Panel, constant: bool, columns: int) -> int:
    """Rows of the left factor that a work-item can keep, 0 where it cannot keep the fewest that pay.

    Args:
        columns: of the register block.
    """
    k, m = steps(c), most(c.m)
    if k * s.smallest_block > s.panel_bytes:
        return 0
    fixed, row = scratch(c, columns, constant, s.score_vectors * s.lanes)
    if kernel.stages:
        row += 4 * -(-largest(c.n.extent) // columns) * columns
        fixed += sum(4 * most(stage.axes) for stage in kernel.stages)
    if fixed + row * min(m, s.smallest_block) > s.scratch_bytes:
        return 0
    return max(1, (s.scratch_bytes - fixed) // max(row, 1))


def scratch(c: Contraction, columns: int, constant: bool, inner_columns: int) -> tuple[int, int]:
    """Bytes of scratch memory that a panel contraction needs: once, and for each row of a block.

    Args:
        columns, inner_columns: of the register tiles of the contraction and of an attention's scores.
    """
    k = steps(c)
    fixed = 0 if constant else -(-largest(c.n.extent) // columns) * columns * k * 4
    row = 4 * k
    if c.scores is not None:
        padded = -(-largest(c.scores.n.extent) // inner_columns) * inner_columns
        fixed += padded * most(c.scores.k) * 4
        row += 4 * padded + 4 * most(c.scores.k)
    for stage in c.stages:
        fixed += 4 * most(stage.axes)
    return fixed, row


def count(variables: tuple[Var, ...]) -> int:
    """How many values the variables take together."""
    return math.prod(v.extent for v in variables)


def most(variables: tuple[Var, ...]) -> int:
    """How many values they take at the greatest extents of open dimensions."""
    return largest(count(variables))
