"""Sizes of a panel contraction: what its schedule block chooses, what else is possible, and what each would cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.kernel.model import Contraction, Kernel
from smartmem_rules.plan.kernel.operations import operations, steps
from smartmem_rules.plan.schedule.contraction.sizing import (
    count,
    most,
    most_rows,
    panel_columns,
    register_rows,
    register_step,
    requests_ahead,
    row_bytes,
)
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class PanelSizes:
    """Register block, and rows and tiles of columns of a work-item."""

    rows: int
    columns: int
    block_rows: int
    tiles_per_block: int
    outputs: int = 1
    """Of a tile along each axis; more than one is another template's (`winograd_sizes`)."""

    def choice(self) -> dict[str, int]:
        """As the database of tuned sizes holds them."""
        return asdict(self)


class PanelProblem:
    """A contraction that the panel template is to realise.

    Args:
        constant: whether the right factors are constants, which are packed in the plan.
        block_rows: rows of a work-item, where the kernel's launch decides that (a chain).
    """

    def __init__(self, kernel: Kernel, c: Contraction, s: Panel, constant: bool, block_rows: int | None = None) -> None:
        self.kernel = kernel
        self.c = c
        self.s = s
        self.constant = constant
        self.m, self.k, self.batch = most(c.m), steps(c), most(c.batch)
        self.extents = [largest(c.n.extent), *(largest(part.n.extent) for part in kernel.parts)]
        self.given = block_rows
        self.row_bytes = row_bytes(c)
        several = self.m * self.batch > s.smallest_block
        few = not is_symbolic(count(c.m)) and self.m <= s.in_place_rows
        plain = not constant and not c.of_bytes and not kernel.parts and not kernel.stages
        self.in_place = few and plain
        self.costly = several and _staging(c) * s.staging_share > 2 * self.k * sum(self.extents)

    def tiles(self, columns: int) -> list[int]:
        """Tiles of columns of each right factor."""
        return [-(-extent // columns) for extent in self.extents]

    def most_rows(self, rows: int, columns: int) -> int:
        """The most rows of a work-item, a multiple of `rows`; 0 where the scratch memory holds not even those."""
        capacity = most_rows(self.kernel, self.c, self.s, self.constant, columns)
        # rows that stay in the second-level cache; a chain weighs its own
        capacity = min(capacity, max(1, self.s.panel_bytes // (4 * self.k)))
        return max(1, capacity // rows) * rows if capacity else 0

    def default(self) -> PanelSizes | None:
        """The sizes that the schedule block leads to; None where the template cannot realise the contraction."""
        s = self.s
        columns = self._columns()
        if not self.most_rows(1, columns):
            return None
        choices = [r for r in s.rows if r * columns <= s.most_sums and r <= self.m] or [min(s.rows)]
        if self.given is None:
            rows = min(choices, key=lambda r: (-(-self.m // r) * register_step(s, r, columns, self.row_bytes), -r))
            if self.in_place:
                rows = max(choices)
        else:
            rows = register_rows(s, min(self.given, self.m), columns, self.row_bytes)[0]
        block_rows = self.given or self._block_rows(rows, self.most_rows(rows, columns))
        total = sum(self.tiles(columns))
        tiles = total
        row_blocks = -(-self.m // block_rows) * self.batch
        if row_blocks < s.items and self._may_split() and not self.costly:
            tiles = max(min(total, 4), -(-total // -(-s.items // row_blocks)))
        sizes = PanelSizes(rows=rows, columns=columns, block_rows=block_rows, tiles_per_block=tiles)
        return self._balanced(self._fewer_stagings(sizes, total), total)

    def _columns(self) -> int:
        """Of a register tile: all of a factor that is read where it lies, so that each of its rows is read once."""
        extent, s = self.c.n.extent, self.s
        if self.in_place and not is_symbolic(extent) and extent % s.lanes == 0 and extent <= s.most_sums:
            return int(extent)
        return panel_columns(self.kernel, s, self.given)

    def _fewer_stagings(self, sizes: PanelSizes, total: int) -> PanelSizes:
        """Work-items that share rows stage them once each: fewer of them where that costs more than balance gains."""
        wider = range(sizes.tiles_per_block, total + 1) if _staging(self.c) > self.k else ()
        found = [replace(sizes, tiles_per_block=-(-total // -(-total // tiles))) for tiles in wider]
        return min(dict.fromkeys(found), key=self.estimate, default=sizes)

    def _balanced(self, sizes: PanelSizes, total: int) -> PanelSizes:
        """On many cores the columns are divided so that the last round of work-items leaves few of them idle."""
        if self.s.items != self.s.items_each * self.s.units or self.costly or not self._may_split():
            return sizes
        shares = dict.fromkeys(-(-total // items) for items in range(1, total + 1))
        return min((replace(sizes, tiles_per_block=tiles) for tiles in shares), key=self.estimate)

    def tail(self, sizes: PanelSizes) -> int:
        """The rows of a chain's block that a register block of their own takes."""
        return 0 if self.given is None else min(self.given, self.m) % sizes.rows

    def ahead(self, sizes: PanelSizes) -> tuple[int, int]:
        """See `requests_ahead`."""
        rows = min(sizes.block_rows, self.m)
        if not self.constant or rows < self.s.request_rows:
            return 0, 0
        depth = self.k if self.c.of_bytes else count(self.c.k)
        return requests_ahead(self.s, depth, sizes.columns, -(-rows // sizes.rows))

    def _may_split(self) -> bool:
        """Whether several work-items may share the columns of the same rows."""
        return self.constant and not self.kernel.stages and self.given is None

    def _block_rows(self, rows: int, kept: int) -> int:
        if not self.constant and self.batch * 2 >= self.s.items:
            return min(kept, -(-self.m // rows) * rows)
        wanted = -(-self.m * self.batch // self.s.items)
        block = max(wanted, rows if self.costly else self.s.smallest_block, rows)
        return min(kept, -(-min(block, self.m) // rows) * rows)

    def legal(self, choice: Mapping[str, int]) -> PanelSizes | None:
        """The sizes of a choice, rounded to what the template takes; None where scratch memory does not suffice."""
        rows, columns = choice["rows"], choice["columns"]
        if rows < 1 or columns % self.s.lanes or columns < self.s.lanes:
            return None
        kept = self.most_rows(rows, columns)
        if not kept:
            return None
        block_rows = self.given or min(kept, -(-min(choice["block_rows"], self.m) // rows) * rows)
        total = sum(self.tiles(columns))
        tiles = max(1, min(choice["tiles_per_block"], total)) if self._may_split() else total
        return PanelSizes(rows=rows, columns=columns, block_rows=block_rows, tiles_per_block=tiles)

    def space(self) -> list[PanelSizes]:
        """All different sizes of the schedule's search space that the template can realise."""
        spaces = self.s.search
        default = self.default()
        if not spaces or default is None:
            return []
        names = ("rows", "columns", "block_rows", "tiles_per_block")
        if "vectors" in spaces:
            spaces = {**spaces, "columns": tuple(count * self.s.lanes for count in spaces["vectors"])}
        values = [spaces.get(name, (default.choice()[name],)) for name in names]
        found: dict[PanelSizes, None] = {}
        for combination in itertools.product(*values):
            sizes = self.legal(dict(zip(names, combination, strict=True)))
            if sizes is not None and sizes.rows * sizes.columns <= self.s.most_sums:
                found.setdefault(sizes)
        return list(found)

    @property
    def right_bytes(self) -> int:
        """Bytes of the right factors."""
        return 4 * self.k * sum(self.extents) * self.batch

    def estimate(self, sizes: PanelSizes) -> float:
        """Relative time: staging and register blocks of one work-item, times the turns that the cores take."""
        s, vectors, units = self.s, sizes.columns / self.s.lanes, self.s.units
        blocks = -(-sizes.block_rows // sizes.rows)
        step = register_step(s, sizes.rows, sizes.columns, self.row_bytes)
        item = blocks * sizes.tiles_per_block * (self.k * step + s.tile_overhead * sizes.rows * vectors)
        item += sizes.block_rows * _staging(self.c) / s.staged_operations + s.item_overhead
        if not self.constant:
            item += self.k * sum(self.tiles(sizes.columns)) * vectors
        column_items = -(-sum(self.tiles(sizes.columns)) // sizes.tiles_per_block)
        items = -(-self.m // sizes.block_rows) * self.batch * column_items
        return item * max(-(-items // units), items / units)


def ranked(problem: PanelProblem) -> Iterator[PanelSizes]:
    """The search space, the cheapest by the cost model first."""
    yield from sorted(problem.space(), key=problem.estimate)


def _staging(c: Contraction) -> int:
    """Scalar operations that staging one row of the left factor takes."""
    stages = sum(most(stage.axes) * operations(stage.body) for stage in c.stages)
    return stages + most(c.k) * operations(c.a)
