"""Sizes of a Winograd convolution, and its modelled time next to that of the panel template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from smartmem_rules.language.blocks.schedule import Panel, Schedule, Winograd
from smartmem_rules.plan.kernel.model import Contraction, Kernel
from smartmem_rules.plan.schedule.contraction.panel import PanelProblem
from smartmem_rules.plan.schedule.contraction.sizing import (
    Filter,
    least_step,
    most,
    register_rows,
    register_step,
    requests_ahead,
    right_factors,
)
from smartmem_rules.plan.schedule.contraction.winograd import Transform, Windows, match_windows, transform_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class WinogradSizes:
    """Register block over tiles, rows of the contraction and tiles of columns of a work-item; outputs of a tile."""

    rows: int
    columns: int
    block_rows: int
    tiles_per_block: int
    outputs: int

    def choice(self) -> dict[str, int]:
        """As the database of tuned sizes holds them."""
        return asdict(self)


class WinogradProblem:
    """A contraction that the Winograd template is to realise; `of` finds out whether it can.

    Args:
        extents: columns of each right factor.
        block_rows: rows of a work-item, where the kernel's launch decides that (a chain).
    """

    def __init__(
        self,
        c: Contraction,
        s: Winograd,
        t: Transform,
        w: Windows,
        extents: Sequence[int],
        block_rows: int | None = None,
    ) -> None:
        self.c, self.s = c, s
        self.transform, self.windows = t, w
        self.m, self.batch, self.k = most(c.m), most(c.batch), w.channel.extent
        self.grain, self.strips, self.across = w.grain(t), w.strips(t), w.across_tiles(t)
        self.extents = extents
        self.given = block_rows

    @staticmethod
    def of(
        kernel: Kernel, c: Contraction, s: Winograd, constant: bool, block_rows: int | None = None
    ) -> WinogradProblem | None:
        """None where the contraction is no such convolution, or its weights are not known before the model runs."""
        if not constant or kernel.stages or c.of_bytes:
            return None
        transform = transform_of(s)
        windows = match_windows(c, transform, s.width)
        extents = [largest(n.extent) for n, _ in right_factors(kernel)]
        return None if windows is None else WinogradProblem(c, s, transform, windows, extents, block_rows)

    def sizes(self, strips: int, columns: int, tiles_per_block: int) -> WinogradSizes | None:
        """Blocks of so many rows of tiles; None where their transforms exceed the scratch memory."""
        block = min(strips * self.grain, self.m)
        if self.given is not None:
            if self.given % self.grain and self.given < self.m:
                return None
            block = min(self.given, self.m)
        tiles = self.tiles_of(block)
        if self._scratch(tiles, columns) > self.s.scratch_bytes:
            return None
        total = self.column_tiles(columns)
        held = total if self.given is not None else max(1, min(tiles_per_block, total))
        rows = register_rows(self.s, tiles, columns)[0]
        return WinogradSizes(
            rows=rows, columns=columns, block_rows=block, tiles_per_block=held, outputs=self.transform.outputs
        )

    def _scratch(self, tiles: int, columns: int) -> int:
        """Bytes of what a work-item keeps to itself: transformed tiles, their sums, and a tile as it is."""
        t = self.transform
        floats = t.points**2 * tiles * (self.k + columns) + t.points**2 * self.k
        return 4 * floats + tiles * (4 + t.outputs**2)

    def legal(self, choice: Mapping[str, int]) -> WinogradSizes | None:
        """The sizes of a choice, rounded to what the template takes."""
        if choice["columns"] not in self.s.columns or choice.get("outputs") != self.transform.outputs:
            return None
        return self.sizes(max(1, choice["block_rows"] // self.grain), choice["columns"], choice["tiles_per_block"])

    def space(self) -> list[WinogradSizes]:
        """All different sizes that the template can realise."""
        found: dict[WinogradSizes, None] = {}
        for columns in self.s.columns:
            total = self.column_tiles(columns)
            # a block of rows transforms its input once for each share of the columns
            shares = dict.fromkeys(-(-total // share) for share in (1, 2, 4, 8, 16))
            # the smallest blocks of each number of blocks
            numbers = range(1, 2 if self.given is not None else self.strips + 1)
            for strips in dict.fromkeys(-(-self.strips // blocks) for blocks in numbers):
                for tiles in shares:
                    sizes = self.sizes(strips, columns, tiles)
                    if sizes is not None:
                        found.setdefault(sizes)
        return list(found)

    @property
    def blocks(self) -> dict[int, WinogradSizes]:
        """The sizes with the widest register block for each block of whole rows that scratch memory has room for."""
        columns = max(self.s.columns)
        every = (self.sizes(strips, columns, 1 << 30) for strips in range(1, self.strips + 1))
        return {sizes.block_rows: sizes for sizes in every if sizes is not None}

    def with_block(self, block_rows: int) -> WinogradProblem:
        """The same contraction in a launch that gives so many rows to a work-item."""
        return WinogradProblem(self.c, self.s, self.transform, self.windows, self.extents, block_rows)

    def tiles_of(self, block_rows: int) -> int:
        """Tiles of a block of rows."""
        return -(-block_rows // self.grain) * self.across

    def column_tiles(self, columns: int) -> int:
        """Tiles of columns of all right factors."""
        return sum(-(-extent // columns) for extent in self.extents)

    def tail(self, sizes: WinogradSizes) -> int:
        """Tiles of a block that a register block of their own takes."""
        return self.tiles_of(sizes.block_rows) % sizes.rows

    def ahead(self, sizes: WinogradSizes) -> tuple[int, int]:
        """See `requests_ahead`; what is next are the weights of the next point."""
        return requests_ahead(self.s, self.k, sizes.columns, -(-self.tiles_of(sizes.block_rows) // sizes.rows))

    @property
    def right_bytes(self) -> int:
        """Bytes of the transformed weights, without what fills up tiles of columns."""
        return 4 * self.transform.points**2 * self.k * sum(self.extents) * self.batch

    def best(self, units: int) -> WinogradSizes | None:
        """The cheapest sizes."""
        return min(self.space(), key=lambda sizes: self.estimate(sizes, units), default=None)

    def estimate(self, sizes: WinogradSizes, units: int) -> float:
        """Relative time as `PanelProblem.estimate` counts it, arithmetic only."""
        s, t, vectors = self.s, self.transform, sizes.columns / self.s.lanes
        tiles = self.tiles_of(sizes.block_rows)
        full, tail = divmod(tiles, sizes.rows)

        def block(rows: int) -> float:
            return self.k * register_step(s, rows, sizes.columns) + s.tile_overhead * rows * vectors

        sums = full * block(sizes.rows) + (block(tail) if tail else 0.0)
        forth = _terms(t.input) * 2 * t.points / 2 + 2 * t.points**2
        back = _terms(t.output) * (t.points + t.outputs) + 2 * t.points**2 + 6 * t.outputs**2
        item = t.points**2 * sizes.tiles_per_block * sums
        item += s.transform_step * tiles * (self.k / s.width * forth + sizes.tiles_per_block * vectors * back)
        column_items = -(-self.column_tiles(sizes.columns) // sizes.tiles_per_block)
        items = -(-self.m // sizes.block_rows) * self.batch * column_items
        return (item + s.item_overhead) * max(-(-items // units), items / units)


def tuned(
    problems: Sequence[WinogradProblem], choice: Mapping[str, int]
) -> tuple[WinogradProblem, WinogradSizes] | None:
    """The problem and sizes that a tuned choice means; None where it means another template."""
    legal = ((problem, problem.legal(choice)) for problem in problems)
    return next(((problem, sizes) for problem, sizes in legal if sizes is not None), None)


def paying(
    problems: Sequence[WinogradProblem], panel: PanelProblem, units: int
) -> tuple[WinogradProblem, WinogradSizes] | None:
    """The cheapest filtering where it is clearly cheaper than the panel: it rounds more, and its weights are larger."""
    default = panel.default()
    best: tuple[float, WinogradProblem, WinogradSizes] | None = None
    for problem in problems:
        sizes = problem.best(units)
        if sizes is None:
            continue
        byte = problem.s.weights_byte
        direct = float("inf") if default is None else panel.estimate(default) + byte * panel.right_bytes
        time = problem.estimate(sizes, units) + byte * problem.right_bytes
        if time < problem.s.pays_below * direct and (best is None or time < best[0]):
            best = (time, problem, sizes)
    return best and best[1:]


def filter_of(problem: WinogradProblem, panel: Panel) -> Filter:
    """What a convolution demands where it is filtered in blocks of whole rows.

    Args:
        panel: the schedule whose best register block reaches the device's peak.
    """
    peak = 2 / least_step(panel)
    blocks = {block: problem.estimate(sizes, 1) * peak for block, sizes in problem.blocks.items()}
    return Filter(blocks, problem.right_bytes)


def filters_of(
    kernel: Kernel,
    schedules: Sequence[Schedule],
    panel: Panel,
    constant: bool,
    units: int,
    block_rows: int | None = None,
) -> tuple[Filter, ...]:
    """How the kernel's convolution could be filtered in blocks of rows; nothing where that would not pay.

    Args:
        schedules: those of the level; only Winograd's matter.
        panel: the schedule whose best register block reaches the device's peak.
        block_rows: rows of a work-item, where the kernel's launch decides that.
    """
    c = kernel.contraction
    if c is None:
        return ()
    own = (WinogradProblem.of(kernel, c, s, constant, block_rows) for s in schedules if isinstance(s, Winograd))
    problems = [one for one in own if one is not None]
    if paying(problems, PanelProblem(kernel, c, panel, constant, block_rows), units) is None:
        return ()
    peak = 2 / least_step(panel)
    times: list[dict[int, float]] = [{} for _ in problems]
    for block in sorted({block for problem in problems for block in problem.blocks}):
        given = [problem.with_block(block) for problem in problems]
        # as the kernel will be sized with this block
        found = paying(given, PanelProblem(kernel, c, panel, constant, block), units)
        if found is not None:
            times[given.index(found[0])][block] = found[0].estimate(found[1], 1) * peak
    return tuple(Filter(own, one.right_bytes) for own, one in zip(times, problems, strict=True) if own)


def _terms(matrix: tuple[tuple[float, ...], ...]) -> int:
    return sum(factor != 0 for row in matrix for factor in row)
