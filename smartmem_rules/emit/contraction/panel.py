"""Contractions for CPUs: staged rows, packed columns, register blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.emit.c.expressions import Expressions, Value
from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.c.partial_sums import product_block
from smartmem_rules.emit.c.program import Target, render
from smartmem_rules.emit.c.reduction_cse import share_terms
from smartmem_rules.emit.contraction.columns import Columns
from smartmem_rules.emit.contraction.in_place import scores_in_place
from smartmem_rules.emit.contraction.right_words import RightWords
from smartmem_rules.emit.contraction.window_rows import WindowRows, Windows
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.addressing import consecutive, offset
from smartmem_rules.plan.kernel.byte_factors import BYTES, PER_WORD, ByteFactor, byte_factor
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import INNER, Contraction, Scores, Stage, Stored
from smartmem_rules.plan.schedule.records import PanelSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several, surely_below
from smartmem_rules.tensor.substitution import substitute, unravel

TILE_LANES, TILE_COLUMNS = 16, (16, 32, 48, 64)
"""Of the panels of bytes that a matrix unit of a processor takes (`smr_byte_tiles` of codegen/prelude.cl)."""


class Panel:
    def __init__(self, launch: Single, target: Target, tensors: Mapping[str, Stored]) -> None:
        kernel = launch.kernel
        assert kernel.contraction is not None
        self.kernel = kernel
        self.contraction: Contraction = kernel.contraction
        self.schedule = schedule_of(kernel, PanelSchedule)
        self.tensors = tensors
        self.text = target.device.text
        self.lanes = target.device.compute.lanes
        # whole vectors of the epilogue make up a register tile
        self.emission = Emission(launch=launch, target=target, tensors=tensors, width=min(target.width, self.lanes))
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.k_count = math.prod(v.extent for v in self.contraction.k)
        # of the right factor as it is packed
        self.right_rows = -(-self.k_count // PER_WORD) if self.contraction.of_bytes else self.k_count
        self.sum_type = "int" if self.contraction.of_bytes else "float"
        self.left_factor = byte_factor(self.contraction.a, self.contraction.k) if self.contraction.of_bytes else None
        # of rows of bytes in memory: whether they have a sign, and how many fill the last word in part
        self._flips, self._rest = False, 0
        self._stride: int | None = None  # elements from one row of the left factor to the next
        self.batch = Var("batch", math.prod(v.extent for v in self.contraction.batch))
        self.row = Var("row", self.m_count)

    def values(self, row: Var | None) -> dict[Var, Index]:
        """The batch and row variables in terms of the flat ones."""
        c = self.contraction
        found = dict(zip(c.batch, unravel(variable(self.batch), tuple(v.extent for v in c.batch)), strict=True))
        if row is not None:
            found.update(zip(c.m, unravel(variable(row), tuple(v.extent for v in c.m)), strict=True))
        return found

    @property
    def vectors(self) -> dict[str, int]:
        """The lanes of the register tile, and the bits of its vectors where they are wider than the kernel's others."""
        return {"lanes": self.lanes, "vector_bits": 32 * self.lanes if self.lanes > self.emission.width else 0}

    def emit(self) -> Source:
        expressions = self.emission.expressions
        names = {"batch": expressions.name(self.batch), "row": expressions.name(self.row)}
        parts = self.columns()
        left_space, left_pointer = self.left()
        if self.left_factor is not None:
            self._zero_of_rows(self.left_factor, left_space, left_pointer, any(part.bytes_zeros for part in parts))
        for part in parts:
            part.write_epilogue()
        s = self.schedule
        tiles = sum(part.tiles for part in parts)
        row_blocks = -(-self.m_count // s.block_rows)
        column_blocks = -(-tiles // s.tiles_per_block)
        items = row_blocks * column_blocks * self.batch.extent
        return self.emission.source(
            "contraction_panel.cl",
            items,
            rows=s.rows,
            columns=s.columns,
            **self.vectors,
            block_rows=s.block_rows,
            tail=s.tail,
            short=not is_symbolic(self.k_count) and self.k_count <= self.emission.target.device.text.short_sums,
            tiles_per_block=s.tiles_per_block,
            parts=parts,
            row_blocks=row_blocks,
            column_blocks=column_blocks,
            m=self.m_count,
            k=self.k_count,
            block=product_block(self.k_count),
            left_space=left_space,
            left_pointer=left_pointer,
            of_bytes=self.contraction.of_bytes,
            sum_type=self.sum_type,
            flip=self._flips,
            rest=self._rest,
            row_bytes=self._row_bytes(),
            **names,
        )

    def _row_bytes(self) -> int | None:
        """Bytes from one row of the left factor to the next where matrix units of processors can take its rows."""
        least = self.text.byte_unit_words
        deep = least and not is_symbolic(self.k_count) and self.right_rows >= least
        fits = self.lanes == TILE_LANES and self.schedule.columns in TILE_COLUMNS
        plain = self.contraction.of_bytes and not self._flips and not self._rest
        return self._stride if plain and deep and fits else None

    def columns(self) -> list[Columns]:
        """The right factors, each with its stores and the number of its first tile."""
        c, kernel = self.contraction, self.kernel
        own = len(kernel.stores) - sum(len(part.stores) for part in kernel.parts)
        factors = [(c.n, c.b, kernel.stores[:own]), *((p.n, p.b, p.stores) for p in kernel.parts)]
        parts: list[Columns] = []
        first = 0
        for (n, b, stores), packed in zip(factors, self.schedule.packed, strict=True):
            part = Columns(panel=self, n=n, stores=stores, first=first)
            part.set_right(b, packed)
            parts.append(part)
            first += part.tiles
        return parts

    # --- the left factor ---

    def left(self) -> tuple[str, str]:
        """Address space and pointer to a row of the left factor; stages the rows where they are not in memory."""
        c = self.contraction
        left = c.a if self.left_factor is None else self.left_factor.elements
        if not c.stages:
            direct = self._direct_rows(left, c.k)
            if direct is not None:
                if self.left_factor is not None:
                    self._flips, self._rest = self.left_factor.signed, self.k_count % PER_WORD
                return direct
        if c.scores is not None:
            self._scores(c.scores)
        stages, (a,) = share_terms(c.stages, (left,), self.text)
        return self._staged_rows("panel", a, c.k, stages, c.scores)

    def _staged_rows(
        self, panel: str, a: Expr, k: tuple[Var, ...], stages: tuple[Stage, ...], scores: Scores | None = None
    ) -> tuple[str, str]:
        expressions, writer = self.emission.expressions, self.emission.writer
        k_count = math.prod(v.extent for v in k)
        of_bytes = self.left_factor is not None
        size = PER_WORD * self.right_rows if of_bytes else k_count
        writer.line(f"{'uchar' if of_bytes else 'float'} {panel}[{self.schedule.block_rows * largest(size)}];")
        local = Var(f"staged_{panel}", self.schedule.block_rows)
        name, row = expressions.name(local), expressions.name(self.row)
        windows = None
        if k == self.contraction.k:
            windows = Windows.of(
                self.contraction, stages, a, self.schedule.window_rows, self.emission.width, self.text.window_loads
            )
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
                place = add(scale(variable(local), size), _position(k, at))
                value = expressions.value(substitute_variables(body, at), lane)
                if of_bytes:
                    writer.line(_stored_byte(panel, value, body.dtype, expressions, place, lane))
                elif lane is None:
                    writer.line(f"{panel}[{expressions.index(place)}] = {value.text};")
                else:
                    start = expressions.index(add(place, scale(variable(lane), -1)))
                    vector = expressions.spread(value, "float32", lane.extent)
                    writer.line(f"*(smr_float{lane.extent}*)({panel} + {start}) = {vector};")

            self.emission.over(k, here, element)
            if size != k_count:
                writer.line(f"for (int k = {k_count}; k < {size}; ++k) {panel}[{name} * {size} + k] = 0;")
        self._stride = size
        return "", f"{panel} + (ROW) * {size}"

    def _zero_of_rows(self, left: ByteFactor, space: str, pointer: str, sums: bool) -> None:
        """The left factor's zero point, with the other sign, and the sums of rows where columns have a zero point."""
        expressions, writer = self.emission.expressions, self.emission.writer
        zero = expressions.value(left.zero).text
        writer.line(f"const int left_zero = -({zero}){' - 128' if left.signed else ''};")
        if not sums:
            return
        writer.line(f"int left_sums[{self.schedule.block_rows}];")
        with expressions.scope("for (int r = 0; r < row_count; ++r)"):
            writer.line(f"{space}const uchar* bytes = {pointer.replace('ROW', 'r')};")
            writer.line("int sum = 0;")
            writer.line(f"for (int k = 0; k < {self.k_count}; ++k) sum += bytes[k]{' ^ 128' if self._flips else ''};")
            writer.line("left_sums[r] = sum;")

    def _direct_rows(self, a: Expr, k: tuple[Var, ...]) -> tuple[str, str] | None:
        """Rows that lie in memory one element after the other."""
        if not isinstance(a, Read) or a.tensor not in self.emission.accesses:
            return None
        access = self.emission.accesses[a.tensor]
        if access.is_image or access.stored.storage not in (("float32",) if self.left_factor is None else BYTES):
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
        expressions.bind_name(row, "(first_row + ROW)")
        as_bytes = f"({access.space}const uchar*)" if access.stored.storage == "int8" else ""
        self._stride = _stride(start, row)
        return access.space, f"{as_bytes}{access.parameter} + {expressions.index(start)}"

    # --- the scores of an attention ---

    @property
    def _score_columns(self) -> int:
        """Columns of the register tile that computes the scores."""
        return self.emission.target.device.text.score_vectors * self.lanes

    def _padded_columns(self, scores: Scores) -> int:
        columns = self._score_columns
        return -(-scores.n.extent // columns) * columns

    def _scores(self, scores: Scores) -> None:
        """Compute the block's rows of the inner contraction into scratch memory."""
        columns = self._score_columns
        tiles = self._padded_columns(scores) // columns
        direct = self._direct_rows(scores.a, scores.k)
        space, pointer = direct if direct is not None else self._staged_rows("inner_panel", scores.a, scores.k, ())
        padded = self._padded_columns(scores)
        if self.schedule.in_place and scores_in_place(self, scores.b, scores.n, scores.k, (space, pointer), padded):
            return
        self.pack("inner_columns", scores.b, scores.n, scores.k, columns)
        k_count = math.prod(v.extent for v in scores.k)
        pointer_text = f"const float* right = inner_columns + tile * {k_count * columns};"
        self.inner_rows(tiles, columns, k_count, (space, pointer), ("", pointer_text))

    def inner_rows(
        self,
        tiles: int,
        columns: int,
        k_count: int,
        left: tuple[str, str],
        right: tuple[str, str],
        words: RightWords | None = None,
    ) -> None:
        """Rows of a contraction into the scratch array `inner`."""
        padded = tiles * columns
        self.emission.writer.line(f"float inner[{self.schedule.block_rows * largest(padded)}];")
        text = render(
            "contraction_scores.cl",
            rows=self.schedule.rows, block_rows=self.schedule.block_rows, tail=self.schedule.tail,
            columns=columns, lanes=self.lanes, tiles=tiles, k=k_count, padded=padded,
            left_space=left[0], left_pointer=left[1], right_space=right[0], right_pointer=right[1],
            ahead=self.schedule.ahead if right[0] and words is None else 0,
            ahead_lines=self.schedule.ahead_lines, block=product_block(k_count), words=words,
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
            not surely_below(k[-1].extent, self.emission.width)
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


def _stored_byte(panel: str, value: Value, dtype: str, expressions: Expressions, place: Index, lane: Var | None) -> str:
    """A statement that stores bytes of a row, with the bit of their sign turned over where they have one."""
    flipped = " ^ 128" if dtype == "int8" else ""
    if lane is None:
        return f"{panel}[{expressions.index(place)}] = (uchar)({value.text}{flipped});"
    start = expressions.index(add(place, scale(variable(lane), -1)))
    vector = expressions.spread(value, dtype, lane.extent)
    return f"*(smr_uchar{lane.extent}*)({panel} + {start}) = convert_uchar{lane.extent}({vector}{flipped});"


def _stride(start: Index, row: Var) -> int | None:
    """By how much the place grows from one row to the next; None where that hangs on the row."""
    steps = [step for atom, step in start.terms if atom == row]
    others = any(atom != row and row in atom.variables for atom, _ in start.terms)
    return steps[0] if steps and not others and not is_symbolic(steps[0]) else None


def _position(axes: tuple[Var, ...], at: Mapping[Var, Index]) -> Index:
    """The row-major place of the reduction variables."""
    position = Index(0)
    for var in axes:
        position = add(scale(position, var.extent), at.get(var, variable(var)))
    return position


def emit_panel(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction for CPUs; the kernel's schedule holds `rows columns block_rows tiles_per_block` and `packed`."""
    return Panel(launch, target, tensors).emit()
