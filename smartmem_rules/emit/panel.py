"""Contractions for CPUs: staged rows, packed columns, register blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from smartmem_rules.emit.access import consecutive, offset
from smartmem_rules.emit.expressions import Internal, Value
from smartmem_rules.emit.kernel import Emission, Target, render
from smartmem_rules.emit.shared_terms import share_terms
from smartmem_rules.emit.windows import WindowRows, Windows
from smartmem_rules.emit.writer import Writer
from smartmem_rules.plan.factors import PackedPanel
from smartmem_rules.plan.model import ACCUMULATOR, INNER, Contraction, Kernel, Scores, Source, Stage, Store, Stored
from smartmem_rules.plan.sizing import INNER_COLUMNS
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several, surely_below
from smartmem_rules.tensor.substitution import substitute, unravel

SHORT_SUMS = 32
"""Steps of a reduction up to which it pays to write out the epilogues of a register block's rows."""


@dataclass(frozen=True)
class PanelSchedule:
    """Sizes of a panel contraction: register block, rows of a work-item, tiles of columns of a work-item.

    The last `tail` rows of a full block have a register block of their own. Every `ahead` steps of the reduction a line
    of the next tile of a packed right factor is asked for. Windows of up to `window_rows` rows are computed together.
    """

    rows: int
    columns: int
    block_rows: int
    tiles_per_block: int
    tail: int
    ahead: int
    window_rows: int

    @staticmethod
    def of(kernel: Kernel) -> PanelSchedule:
        s = kernel.schedule
        names = ("rows", "columns", "block_rows", "tiles_per_block", "tail", "ahead", "window_rows")
        return PanelSchedule(*(s[name] for name in names))


class Panel:
    def __init__(self, kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> None:
        assert kernel.contraction is not None
        self.kernel = kernel
        self.contraction: Contraction = kernel.contraction
        self.schedule = PanelSchedule.of(kernel)
        self.tensors = tensors
        self.emission = Emission(kernel, target, tensors, 8)
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.k_count = math.prod(v.extent for v in self.contraction.k)
        # of the right factor as it is packed
        self.right_rows = self.k_count
        self.batch = Var("batch", math.prod(v.extent for v in self.contraction.batch))
        self.row = Var("row", self.m_count)

    def values(self, row: Var | None) -> dict[Var, Index]:
        """The batch and row variables in terms of the flat ones."""
        c = self.contraction
        found = dict(zip(c.batch, unravel(variable(self.batch), tuple(v.extent for v in c.batch)), strict=True))
        if row is not None:
            found.update(zip(c.m, unravel(variable(row), tuple(v.extent for v in c.m)), strict=True))
        return found

    def emit(self) -> Source:
        expressions = self.emission.expressions
        names = {"batch": expressions.name(self.batch), "row": expressions.name(self.row)}
        parts = self.columns()
        left_space, left_pointer = self.left()
        for part in parts:
            part.write_epilogue()
        s = self.schedule
        tiles = sum(part.tiles for part in parts)
        row_blocks = -(-self.m_count // s.block_rows)
        column_blocks = -(-tiles // s.tiles_per_block)
        items = row_blocks * column_blocks * self.batch.extent
        return self.emission.source(
            "contraction_panel.cl",
            (items,),
            (1,),
            rows=s.rows,
            columns=s.columns,
            block_rows=s.block_rows,
            tail=s.tail,
            short=not is_symbolic(self.k_count) and self.k_count <= SHORT_SUMS,
            tiles_per_block=s.tiles_per_block,
            parts=parts,
            row_blocks=row_blocks,
            column_blocks=column_blocks,
            m=self.m_count,
            k=self.k_count,
            left_space=left_space,
            left_pointer=left_pointer,
            **names,
        )

    def columns(self) -> list[Columns]:
        """The right factors, each with its stores and the number of its first tile."""
        c, kernel = self.contraction, self.kernel
        own = len(kernel.stores) - sum(len(part.stores) for part in kernel.parts)
        factors = [(c.n, c.b, kernel.stores[:own]), *((p.n, p.b, p.stores) for p in kernel.parts)]
        parts: list[Columns] = []
        first = 0
        for (n, b, stores), packed in zip(factors, kernel.schedule["packed"], strict=True):
            part = Columns(self, n, stores, first)
            part.set_right(b, packed)
            parts.append(part)
            first += part.tiles
        return parts

    # --- the left factor ---

    def left(self) -> tuple[str, str]:
        """Address space and pointer to a row of the left factor; stages the rows where they are not in memory."""
        c = self.contraction
        if not c.stages:
            direct = self._direct_rows(c.a, c.k)
            if direct is not None:
                return direct
        if c.scores is not None:
            self._scores(c.scores)
        stages, (a,) = share_terms(c.stages, (c.a,))
        return self._staged_rows("panel", a, c.k, stages, c.scores)

    def _staged_rows(
        self, panel: str, a: Expr, k: tuple[Var, ...], stages: tuple[Stage, ...], scores: Scores | None = None
    ) -> tuple[str, str]:
        expressions, writer = self.emission.expressions, self.emission.writer
        k_count = math.prod(v.extent for v in k)
        writer.line(f"float {panel}[{self.schedule.block_rows * largest(k_count)}];")
        local = Var(f"staged_{panel}", self.schedule.block_rows)
        name, row = expressions.name(local), expressions.name(self.row)
        windows = None
        if k == self.contraction.k:
            windows = Windows.of(self.contraction, stages, a, self.schedule.window_rows, self.emission.width)
        rows = expressions.scope(f"for (int {name} = 0; {name} < row_count; ++{name})")
        if windows is not None:
            stages = tuple(replace(s, body=windows.instead(s.body)) for s in stages)
            a = windows.instead(a)
            rows = WindowRows(self.emission, windows, self.values(None), self.contraction.m).rows(name)
        with rows:
            writer.line(f"const int {row} = first_row + {name};")
            if scores is not None:
                padded = self._padded_columns(scores)
                writer.line(f"const float* inner_row = inner + {name} * {padded};")
                reader = self.emission.scratch_reader("inner_row", [scores.n.extent], "float32")
                expressions.internal[INNER] = reader
            values = self.values(self.row)
            for stage in stages:
                body = substitute_variables(stage.body, values)
                self.emission.stage(Stage(stage.name, stage.axes, body, stage.dtype))
            here = substitute_variables(a, values)

            def element(body: Expr, at: dict[Var, Index], lane: Var | None) -> None:
                place = add(scale(variable(local), k_count), _position(k, at))
                value = expressions.value(substitute_variables(body, at), lane)
                if lane is None:
                    writer.line(f"{panel}[{expressions.index(place)}] = {value.text};")
                else:
                    start = expressions.index(add(place, scale(variable(lane), -1)))
                    vector = expressions.spread(value, "float32", lane.extent)
                    writer.line(f"*(smr_float{lane.extent}*)({panel} + {start}) = {vector};")

            self.emission.over(k, here, element)
        return "", f"{panel} + (ROW) * {k_count}"

    def _direct_rows(self, a: Expr, k: tuple[Var, ...]) -> tuple[str, str] | None:
        """Rows that lie in memory one element after the other."""
        if not isinstance(a, Read) or a.tensor not in self.emission.accesses:
            return None
        access = self.emission.accesses[a.tensor]
        if access.is_image or access.stored.storage != "float32":
            return None
        k_count = math.prod(v.extent for v in k)
        flat = Var("flat_k", k_count)
        row = Var("direct_row", self.m_count)
        values = self.values(row)
        values.update(zip(k, unravel(variable(flat), tuple(v.extent for v in k)), strict=True))
        indices = tuple(substitute(i, values) for i in a.indices)
        if any(i.gathered for i in indices):
            return None
        position = offset(access.stored, indices)
        start = consecutive(position, flat) if several(k_count) else position
        if start is None:
            return None
        expressions = self.emission.expressions
        expressions.call(row, "(first_row + ROW)")
        return access.space, f"{access.parameter} + {expressions.index(start)}"

    # --- the scores of an attention ---

    def _padded_columns(self, scores: Scores) -> int:
        return -(-scores.n.extent // INNER_COLUMNS) * INNER_COLUMNS

    def _scores(self, scores: Scores) -> None:
        """Compute the block's rows of the inner contraction into scratch memory."""
        padded = self._padded_columns(scores)
        tiles = padded // INNER_COLUMNS
        self.pack("inner_columns", scores.b, scores.n, scores.k, INNER_COLUMNS)
        direct = self._direct_rows(scores.a, scores.k)
        space, pointer = direct if direct is not None else self._staged_rows("inner_panel", scores.a, scores.k, ())
        k_count = math.prod(v.extent for v in scores.k)
        pointer_text = f"const float* right = inner_columns + tile * {k_count * INNER_COLUMNS};"
        self.inner_rows(tiles, INNER_COLUMNS, k_count, (space, pointer), ("", pointer_text))

    def inner_rows(self, tiles: int, columns: int, k_count: int, left: tuple[str, str], right: tuple[str, str]) -> None:
        """Rows of a contraction into the scratch array `inner`."""
        padded = tiles * columns
        self.emission.writer.line(f"float inner[{self.schedule.block_rows * largest(padded)}];")
        text = render(
            "contraction_scores.cl",
            rows=self.schedule.rows, block_rows=self.schedule.block_rows, tail=self.schedule.tail,
            columns=columns, tiles=tiles, k=k_count, padded=padded,
            left_space=left[0], left_pointer=left[1], right_space=right[0], right_pointer=right[1],
            ahead=self.schedule.ahead if right[0] else 0,
        )  # fmt: skip
        for line in text.splitlines():
            self.emission.writer.line(line)

    # --- right factors ---

    def pack(self, name: str, factor: Expr, n: Var, k: tuple[Var, ...], columns: int) -> None:
        """Copy a right factor of this batch into panels of columns."""
        expressions, writer = self.emission.expressions, self.emission.writer
        k_count = math.prod(v.extent for v in k)
        tiles = -(-n.extent // columns)
        writer.line(f"float {name}[{largest(tiles * k_count) * columns}];")
        b = substitute_variables(factor, self.values(None))

        def element(body: Expr, at: dict[Var, Index], lane: Var | None) -> None:
            value = expressions.value(substitute_variables(body, at), lane)
            column = at.get(n, variable(n))
            within = add(scale(_position(k, at), columns), column % columns)
            place = add(scale(column // columns, k_count * columns), within)
            if lane is None:
                writer.line(f"{name}[{expressions.index(place)}] = {value.text};")
                return
            vector = expressions.spread(value, "float32", lane.extent)
            start = add(place, scale(variable(lane), -1))
            if lane not in start.variables:
                writer.line(f"*(smr_float{lane.extent}*)({name} + {expressions.index(start)}) = {vector};")
                return
            for i in range(lane.extent):
                at_lane = expressions.index(substitute(place, {lane: Index(i)}))
                writer.line(f"{name}[{at_lane}] = {vector}.s{i};")

        along_k = (
            not surely_below(k[-1].extent, 8)
            and not expressions.is_contiguous(b, n)
            and expressions.is_contiguous(b, k[-1])
        )
        self.emission.over((n, *k) if along_k else (*k, n), b, element)
        rest = tiles * columns - n.extent
        if rest:
            start = (tiles - 1) * k_count * columns + columns - rest
            writer.line(
                f"for (int k = 0; k < {k_count}; ++k) "
                f"for (int n = 0; n < {rest}; ++n) {name}[{start} + k * {columns} + n] = 0.0f;"
            )


def _position(axes: tuple[Var, ...], at: Mapping[Var, Index]) -> Index:
    """The row-major place of the reduction variables."""
    position = Index(0)
    for var in axes:
        position = add(scale(position, var.extent), at.get(var, variable(var)))
    return position


def _element(text: str) -> Internal:
    """Reads of the accumulator as one element of it."""
    return lambda read, lane: Value(text, 1)


def _bind_accumulator(store: Store, lane: Var | None) -> Store:
    if lane is None:
        return store

    def read(node: Read) -> Expr:
        return Read(ACCUMULATOR, (variable(lane),), node.dtype) if node.tensor == ACCUMULATOR else node

    return Store(store.tensor, store.indices, substitute_reads(store.value, read), store.local)


@dataclass
class Columns:
    """One right factor and what is written of its columns."""

    panel: Panel
    n: Var
    stores: tuple[Store, ...]
    first: int
    space: str = ""
    pointer: str = ""
    epilogue: str = ""

    @property
    def columns(self) -> int:
        return self.panel.schedule.columns

    @property
    def ahead(self) -> int:
        """See `PanelSchedule`; factors that are packed or widened here lie in cache."""
        return self.panel.schedule.ahead if self.space else 0

    @property
    def tiles(self) -> int:
        return -(-self.n.extent // self.columns)

    # --- the factor ---

    def set_right(self, b: Expr, packed: PackedPanel | None) -> None:
        panel = self.panel
        if packed is None:
            panel.pack("columns", b, self.n, panel.contraction.k, self.columns)
            self.pointer = f"const float* right = columns + tile * {panel.k_count * self.columns};"
            return
        parameter = panel.emission.accesses[packed.name].parameter
        per_tile = panel.right_rows * self.columns
        batches = self._batch(packed)
        prefix = f"({panel.emission.expressions.index(batches)}) * {self.tiles} + " if not batches.is_constant else ""
        start = f"{parameter} + ({prefix}tile) * {per_tile}"
        if panel.tensors[packed.name].storage == "float16":
            self.pointer = (
                f"float widened[{per_tile}]; for (int k = 0; k < {per_tile}; k += 8) "
                f"*(smr_float8*)(widened + k) = vload_half8(0, {start} + k); const float* right = widened;"
            )
            return
        self.space = "__global "
        self.pointer = f"__global const float* right = {start};"

    def _batch(self, packed: PackedPanel) -> Index:
        """The position of the batch in a packed constant, which holds only the batches that the factor depends on."""
        position = Index(0)
        values = self.panel.values(None)
        for var in packed.batch:
            position = add(scale(position, var.extent), values[var])
        return position

    # --- the epilogue ---

    def write_epilogue(self) -> None:
        emission = self.panel.emission
        body, own = emission.writer, Writer()
        emission.writer = emission.expressions.writer = own
        with own.block(""):
            self._all_columns()
        emission.writer = emission.expressions.writer = body
        self.epilogue = own.text()

    def _all_columns(self) -> None:
        expressions = self.panel.emission.expressions
        columns = self.columns
        tile = Var(f"tile{self.first}", self.tiles)
        expressions.call(tile, "tile")
        first = scale(variable(tile), columns)
        width, n = 8, self.n
        rows = self.panel.values(self.panel.row)
        if is_symbolic(n.extent):
            self._open_columns(rows, first)
            return
        whole_tiles, rest = divmod(n.extent, columns)
        for start in range(0, columns, width):
            if whole_tiles == 0 and start >= rest:
                continue
            always = rest == 0 or (whole_tiles == 0 and start + width <= rest)
            sometimes = whole_tiles > 0 or start + width <= rest
            lane = Var("lane", width)
            condition = f"if (tile * {columns} + {start + width} <= {n.extent})"
            if sometimes:
                at = {**rows, n: add(add(first, Index(start)), variable(lane))}
                self._set_accumulator(f"(*(const smr_float8*)(accumulated + {start}))", start)
                with expressions.scope("" if always else condition):
                    self._write(at, lane)
            if not always and start < rest:
                self._partial(rows, start, rest, whole_tiles, sometimes)

    def _open_columns(self, rows: dict[Var, Index], first: Index) -> None:
        """The columns of a tile where their number is known at run time: whole vectors, else one by one."""
        expressions, extent = self.panel.emission.expressions, self.n.extent
        for start in range(0, self.columns, 8):
            lane, place = Var("lane", 8), Var(f"column{start}", 8)
            before = f"tile * {self.columns} + {start}"
            with expressions.scope(f"if ({before} + 8 <= {extent})"):
                self._set_accumulator(f"(*(const smr_float8*)(accumulated + {start}))", start)
                self._write({**rows, self.n: add(add(first, Index(start)), variable(lane))}, lane)
            name = expressions.name(place)
            head = f"for (int {name} = 0; {name} < {extent} - ({before}); ++{name})"
            with expressions.scope(f"if ({before} + 8 > {extent})"), expressions.scope(head):
                expressions.internal[ACCUMULATOR] = _element(f"accumulated[{start} + {name}]")
                self._write({**rows, self.n: add(add(first, Index(start)), variable(place))}, None)

    def _partial(self, rows: dict[Var, Index], start: int, rest: int, whole_tiles: int, guarded: bool) -> None:
        """Columns of the last tile that fill no vector."""
        expressions = self.panel.emission.expressions
        count = min(8, rest - start)
        if count == 8:
            return
        place = Var("column", count)
        with expressions.scope(f"if (tile == {whole_tiles})" if guarded else ""), expressions.loop(place):
            name = expressions.name(place) if count > 1 else "0"
            expressions.internal[ACCUMULATOR] = lambda read, lane: Value(f"accumulated[{start} + {name}]", 1)
            at = {**rows, self.n: add(Index(whole_tiles * self.columns + start), variable(place))}
            self._write(at, None)

    def _set_accumulator(self, vector: str, start: int) -> None:
        def read(node: Read, lane: Var | None) -> Value:
            if lane is not None:
                return Value(vector, lane.extent)
            return Value(f"accumulated[{start + node.indices[0].constant}]", 1)

        self.panel.emission.expressions.internal[ACCUMULATOR] = read

    def _write(self, at: dict[Var, Index], lane: Var | None) -> None:
        for store in self.stores:
            self.panel.emission.store(_bind_accumulator(store, lane), at, lane)


def emit_panel(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction for CPUs; the kernel's schedule holds `rows columns block_rows tiles_per_block` and `packed`."""
    return Panel(kernel, target, tensors).emit()
