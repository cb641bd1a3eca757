"""Contractions for GPUs with local memory: tiles that a work-group shares, register blocks, slices of the reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smartmem_rules.emit.epilogue import LANES, VectorEpilogue
from smartmem_rules.emit.expressions import Team, Value
from smartmem_rules.emit.kernel import Emission, Target
from smartmem_rules.emit.writer import Writer
from smartmem_rules.plan.model import Contraction, Kernel, Source, Store, Stored
from smartmem_rules.tensor.expr import Expr, Read, substitute_variables
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.substitution import unravel

PADDING_LEFT = 4
PADDING_RIGHT = 8
"""Floats behind each row of a tile in local memory, so that neighbouring work-items meet different banks."""


@dataclass(frozen=True)
class GroupSchedule:
    """Sizes of a work-group's tiles; `warp_rows` and `warp_columns` are the sums of 32 work-items."""

    rows: int
    columns: int
    step: int
    slices: int
    warp_rows: int
    warp_columns: int

    @staticmethod
    def of(kernel: Kernel) -> GroupSchedule:
        s = kernel.schedule
        return GroupSchedule(s["rows"], s["columns"], s["step"], s["slices"], s["warp_rows"], s["warp_columns"])

    @property
    def warps(self) -> int:
        """Sub-groups of one slice."""
        return (self.rows // self.warp_rows) * (self.columns // self.warp_columns)

    @property
    def threads(self) -> int:
        return 32 * self.warps * self.slices

    @property
    def tile(self) -> int:
        """Floats of one pair of tiles."""
        return self.rows * (self.step + PADDING_LEFT) + self.step * (self.columns + PADDING_RIGHT)

    @property
    def memory(self) -> int:
        """Floats of local memory: two pairs of tiles, later the sums of all slices."""
        return max(2 * self.tile, self.slices * self.rows * (self.columns + 4))


@dataclass(frozen=True)
class Loading:
    """C text that brings one factor's tile into registers (`load`), and from there to local memory (`keep`)."""

    declaration: str
    load: str
    keep: str


@dataclass(frozen=True)
class FinishedPart:
    """The columns of one right factor: its range of column tiles, and how four of them are written."""

    first: int
    last: int
    block: str
    blocks: int
    epilogue: str


@dataclass(frozen=True)
class _Side:
    """One factor of the product as tiles see it.

    Attributes:
        own: the axis that the factor does not share with the other one: rows of the left, columns of the right.
        tile: its extent in a tile.
        place: the address in local memory of an element, given its place along `own` and along the reduction.
    """

    name: str
    factor: Expr
    own: Var
    own_axes: tuple[Var, ...]
    first: str
    tile: int
    place: Callable[[str, str], str]


class _Group:
    def __init__(self, kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> None:
        assert kernel.contraction is not None
        self.kernel = kernel
        self.target = target
        self.contraction: Contraction = kernel.contraction
        self.schedule = GroupSchedule.of(kernel)
        self.emission = Emission(kernel, target, tensors, LANES)
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.k_count = math.prod(v.extent for v in self.contraction.k)
        self.batch = Var("batch", math.prod(v.extent for v in self.contraction.batch))
        self.row = Var("row", self.m_count)
        c = self.contraction
        self.batch_values = dict(
            zip(c.batch, unravel(variable(self.batch), tuple(v.extent for v in c.batch)), strict=True)
        )

    def emit(self) -> Source:
        s, c = self.schedule, self.contraction
        expressions = self.emission.expressions
        names = {"batch": expressions.name(self.batch), "row": expressions.name(self.row)}
        columns = -(-c.n.extent // s.columns) + sum(-(-p.n.extent // s.columns) for p in self.kernel.parts)
        prologue = self._captured(self._statistics)
        left = self._loading(self._left())
        right = self._loading(self._right(columns))
        parts = self._parts()
        row_tiles = -(-self.m_count // s.rows)
        groups = row_tiles * columns * self.batch.extent
        matrix = bool(self.target.matrix)
        return self.emission.source(
            "contraction_group.cl",
            (groups * s.threads,),
            (s.threads,),
            rows=s.rows,
            columns=s.columns,
            step=s.step,
            slices=s.slices,
            warp_rows=s.warp_rows,
            warp_columns=s.warp_columns,
            warps=s.warps,
            threads=s.threads,
            memory=s.memory,
            tile=s.tile,
            left_stride=s.step + PADDING_LEFT,
            right_stride=s.columns + PADDING_RIGHT,
            sum_stride=s.columns + 4,
            sums=s.warp_rows * s.warp_columns // 128,
            turns=-(-self.k_count // s.step),
            column_tiles=columns,
            row_tiles=row_tiles,
            m=self.m_count,
            matrix=matrix,
            prologue=prologue,
            left=left,
            right=right,
            parts=parts,
            **names,
        )

    def _captured(self, write: Callable[[], None]) -> str:
        """What a function writes, as text of its own."""
        emission, own = self.emission, Writer()
        body = emission.writer
        emission.writer = emission.expressions.writer = own
        with emission.expressions.scope(""):
            write()
        emission.writer = emission.expressions.writer = body
        return own.text()

    # --- statistics of rows ---

    def _statistics(self) -> None:
        """Scalars of each row of the tile into local memory, a team of work-items for a row."""
        stages = self.contraction.stages
        if not stages:
            return
        s, emission, expressions = self.schedule, self.emission, self.emission.expressions
        writer = emission.writer
        size = min(32, 1 << ((s.threads // s.rows).bit_length() - 1))
        teams = s.threads // size
        emission.shared.append(f"float across[{s.threads}]")
        row = expressions.name(self.row)
        expressions.team = Team(size, f"(thread % {size})", "thread", "across", teams) if size > 1 else None
        for stage in stages:
            emission.shared.append(f"float {self._statistic(stage.name)}[{s.rows}]")
        with expressions.scope(f"for (int turn = 0; turn < {-(-s.rows // teams)}; ++turn)"):
            writer.line(f"const int place = thread / {size} + turn * {teams};")
            writer.line(f"const int {row} = min(first_row + place, {self.m_count - 1});")
            values = self._row_values(self.row)
            for stage in stages:
                value = expressions.value(substitute_variables(stage.body, values))
                expressions.internal[stage.name] = lambda read, lane, value=value: value  # type: ignore[misc]
                guard = f"thread % {size} == 0 && place < {s.rows}"
                writer.line(f"if ({guard}) {self._statistic(stage.name)}[place] = {value.text};")
        writer.line("barrier(CLK_LOCAL_MEM_FENCE);")
        expressions.team = None

    def _statistic(self, stage: str) -> str:
        return f"statistic{[s.name for s in self.contraction.stages].index(stage)}"

    def _row_values(self, row: Var) -> dict[Var, Index]:
        c = self.contraction
        places = unravel(variable(row), tuple(v.extent for v in c.m))
        return {**self.batch_values, **dict(zip(c.m, places, strict=True))}

    # --- tiles ---

    def _left(self) -> _Side:
        c, s = self.contraction, self.schedule
        stride = s.step + PADDING_LEFT
        factor = substitute_variables(c.a, self.batch_values)
        for stage in c.stages:
            name = self._statistic(stage.name)
            self.emission.expressions.internal[stage.name] = lambda read, lane, name=name: Value(f"{name}[at]", 1)  # type: ignore[misc]
        return _Side(
            "left",
            factor,
            Var("left_row", self.m_count),
            c.m,
            "first_row",
            s.rows,
            lambda at, k: f"({at}) * {stride} + {k}",
        )

    def _right(self, column_tiles: int) -> _Side:
        c, s = self.contraction, self.schedule
        stride = s.columns + PADDING_RIGHT
        packed = self.kernel.schedule["packed"]
        n, factor = c.n, c.b
        if packed is not None:
            # a constant factor holds the columns of all parts, filled up to whole tiles
            n = Var("packed_column", column_tiles * s.columns)
            depth = self.emission.tensors[packed.name].type.shape[0] // math.prod(v.extent for v in packed.batch)
            position = Index(0)
            for var in packed.batch:
                position = add(scale(position, var.extent), variable(var))
            flat = _flat(c.k)
            factor = Read(packed.name, (add(scale(position, depth), flat), variable(n)), "float32")
        factor = substitute_variables(factor, self.batch_values)
        return _Side(
            "right", factor, Var("right_column", n.extent), (n,), f"column_tile * {s.columns}", s.columns,
            lambda at, k: f"({k}) * {stride} + {at}",
        )  # fmt: skip

    def _loading(self, side: _Side) -> Loading:
        k = self.contraction.k
        expressions = self.emission.expressions
        if k[-1].extent % LANES == 0 and expressions.is_contiguous(side.factor, k[-1]):
            return self._vectors(side, k, side.own_axes, along_reduction=True)
        per_row = side.name == "left" and bool(self.contraction.stages)
        last = side.own_axes[-1] if side.own_axes else None
        if last is None or per_row or last.extent % LANES or not expressions.is_contiguous(side.factor, last):
            return self._elements(side)
        return self._vectors(side, side.own_axes, k, along_reduction=False)

    def _vectors(self, side: _Side, along: tuple[Var, ...], across: tuple[Var, ...], along_reduction: bool) -> Loading:
        """Four neighbouring elements at a time; `along` are the axes whose last one is contiguous."""
        s = self.schedule
        depth, width = (s.step, side.tile)
        quads = (depth if along_reduction else width) // LANES
        others = width if along_reduction else depth
        count = quads * others
        registers = -(-count // s.threads)
        quad = Var(f"{side.name}_quad", -(-math.prod(v.extent for v in along) // LANES))
        other = Var(f"{side.name}_other", math.prod(v.extent for v in across))
        lane = Var("lane", LANES)
        inner = along[-1].extent // LANES
        *outer, last = unravel(variable(quad), (*(v.extent for v in along[:-1]), inner))
        values = dict(zip(along[:-1], outer, strict=True))
        values[along[-1]] = add(scale(last, LANES), variable(lane))
        values.update(zip(across, unravel(variable(other), tuple(v.extent for v in across)), strict=True))
        name = f"{side.name}_next"

        def load() -> None:
            own_start, k_start = side.first, f"step * {s.step}"
            if along_reduction:
                own, reduction = (
                    self._inside(other, f"{own_start} + at"),
                    (quad, f"step * {s.step // LANES} + slot % {quads}"),
                )
                at = f"slot / {quads}"
            else:
                own, reduction = (
                    self._inside(quad, f"({own_start}) / {LANES} + at"),
                    (other, f"{k_start} + slot / {quads}"),
                )
                at = f"slot % {quads}"
            self._slots(registers, count, at, own, reduction, lambda: self._value(side, values, lane), f"{name}[e]")

        def keep() -> None:
            head = f"for (int e = 0; e < {registers}; ++e)"
            writer = self.emission.writer
            writer.line("#pragma unroll")
            with writer.block(head):
                writer.line(f"const int slot = e * {s.threads} + thread;")
                with writer.block("" if count % s.threads == 0 else f"if (slot < {count})"):
                    if along_reduction:
                        start = side.place(f"slot / {quads}", f"slot % {quads} * {LANES}")
                        self._keep_vector(
                            side,
                            start,
                            f"{name}[e]",
                            side.name == "left",
                            lambda i: side.place(f"slot / {quads}", f"slot % {quads} * {LANES} + {i}"),
                        )
                    else:
                        start = side.place(f"slot % {quads} * {LANES}", f"slot / {quads}")
                        self._keep_vector(
                            side,
                            start,
                            f"{name}[e]",
                            side.name == "right",
                            lambda i: side.place(f"slot % {quads} * {LANES} + {i}", f"slot / {quads}"),
                        )

        return Loading(f"    float4 {name}[{registers}];", self._captured(load), self._captured(keep))

    def _keep_vector(self, side: _Side, start: str, value: str, whole: bool, place: Callable[[int], str]) -> None:
        writer = self.emission.writer
        if whole:
            writer.line(f"*(__local float4*)({side.name} + {start}) = {value};")
            return
        for i in range(LANES):
            writer.line(f"{side.name}[{place(i)}] = {value}.s{i};")

    def _elements(self, side: _Side) -> Loading:
        """One element at a time, neighbouring work-items along the axis that is the closer one in memory."""
        s, k = self.schedule, self.contraction.k
        count = s.step * side.tile
        registers = -(-count // s.threads)
        own = Var(f"{side.name}_own", side.own.extent)
        flat = Var(f"{side.name}_k", self.k_count)
        values = dict(zip(side.own_axes, unravel(variable(own), tuple(v.extent for v in side.own_axes)), strict=True))
        values.update(zip(k, unravel(variable(flat), tuple(v.extent for v in k)), strict=True))
        own_first = bool(side.own_axes) and self.emission.expressions.is_contiguous(side.factor, side.own_axes[-1])
        at, depth = (
            (f"slot % {side.tile}", f"slot / {side.tile}") if own_first else (f"slot / {s.step}", f"slot % {s.step}")
        )
        name = f"{side.name}_next"

        def load() -> None:
            inside = self._inside(own, f"{side.first} + at")
            reduction = (flat, f"step * {s.step} + {depth}")
            self._slots(registers, count, at, inside, reduction, lambda: self._value(side, values, None), f"{name}[e]")

        def keep() -> None:
            writer = self.emission.writer
            writer.line("#pragma unroll")
            with writer.block(f"for (int e = 0; e < {registers}; ++e)"):
                writer.line(f"const int slot = e * {s.threads} + thread;")
                guard = "" if count % s.threads == 0 else f"if (slot < {count}) "
                writer.line(f"{guard}{side.name}[{side.place(at, depth)}] = {name}[e];")

        return Loading(f"    float {name}[{registers}];", self._captured(load), self._captured(keep))

    def _inside(self, var: Var, text: str) -> str:
        """The declaration of a place that stays inside the factor."""
        return f"const int {self.emission.expressions.name(var)} = min({text}, {var.extent - 1});"

    def _slots(
        self, registers: int, count: int, at: str, own: str, reduction: tuple[Var, str],
        value: Callable[[], str], target: str,
    ) -> None:  # fmt: skip
        s, expressions, writer = self.schedule, self.emission.expressions, self.emission.writer
        var, text = reduction
        whole = self.k_count % s.step == 0
        writer.line("#pragma unroll")
        with expressions.scope(f"for (int e = 0; e < {registers}; ++e)"):
            writer.line(f"const int slot = e * {s.threads} + thread;")
            with expressions.scope("" if count % s.threads == 0 else f"if (slot < {count})"):
                writer.line(f"const int at = {at};")
                writer.line(own)
                writer.line(f"const int depth = {text};")
                name = expressions.name(var)
                writer.line(f"const int {name} = {'depth' if whole else f'min(depth, {var.extent - 1})'};")
                result = value()
                writer.line(f"{target} = {result if whole else f'depth < {var.extent} ? {result} : 0.0f'};")

    def _value(self, side: _Side, values: dict[Var, Index], lane: Var | None) -> str:
        expressions = self.emission.expressions
        value = expressions.value(substitute_variables(side.factor, values), lane)
        return value.text if lane is None else expressions.spread(value, "float32", LANES)

    # --- what is written ---

    def _parts(self) -> list[FinishedPart]:
        kernel = self.kernel
        own = len(kernel.stores) - sum(len(p.stores) for p in kernel.parts)
        found: list[FinishedPart] = []
        first = 0
        for n, stores in [(self.contraction.n, kernel.stores[:own]), *((p.n, p.stores) for p in kernel.parts)]:
            tiles = -(-n.extent // self.schedule.columns)
            found.append(self._part(n, stores, first, first + tiles))
            first += tiles
        return found

    def _part(self, n: Var, stores: tuple[Store, ...], first: int, last: int) -> FinishedPart:
        blocks = -(-n.extent // LANES)
        block, lane = Var(f"block{first}", blocks), Var("lane", LANES)
        epilogue = VectorEpilogue(self.emission, n.extent, lane, stores)
        name = self.emission.expressions.name(block)
        column = add(scale(Index(0, ((block, 1),)), LANES), variable(lane))

        def write() -> None:
            epilogue.set_accumulator("finished")
            epilogue.write({**self._row_values(self.row), n: column}, block)

        return FinishedPart(first, last, name, blocks, self._captured(write))


def _flat(k: tuple[Var, ...]) -> Index:
    position = Index(0)
    for var in k:
        position = add(scale(position, var.extent), variable(var))
    return position


def emit_group(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction for GPUs; the kernel's schedule holds the sizes of `GroupSchedule` and `packed`."""
    return _Group(kernel, target, tensors).emit()
