"""Contractions in registers: a few rows by a few vectors of columns for each work-item, from textures or buffers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.c.partial_sums import LONGEST_PRODUCT, Accumulators, TermLoop, in_partial_sums
from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.contraction.epilogue import LANES, VectorEpilogue
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Contraction, Stored
from smartmem_rules.plan.schedule.grid import tile_vectors
from smartmem_rules.plan.schedule.records import TileSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import unravel


class _Tile:
    def __init__(self, launch: Single, target: Target, tensors: Mapping[str, Stored]) -> None:
        kernel = launch.kernel
        assert kernel.contraction is not None
        self.kernel = kernel
        self.target = target
        self.contraction: Contraction = kernel.contraction
        self.rows = schedule_of(kernel, TileSchedule).rows
        self.emission = Emission(launch=launch, target=target, tensors=tensors, width=LANES)
        self.blocks = -(-self.contraction.n.extent // LANES)
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.vectors = tile_vectors(kernel)
        self.lane = Var("lane", LANES)

    def emit(self) -> Source:
        c, writer, expressions = self.contraction, self.emission.writer, self.emission.expressions
        row_blocks, wide = -(-self.m_count // self.rows), -(-self.blocks // self.vectors)
        batch = Var("batch", math.prod(v.extent for v in c.batch))
        column_block, row_block = Var("block", wide), Var("row_block", row_blocks)
        total = batch.extent * row_blocks * wide
        names = [expressions.name(v) for v in (column_block, row_block, batch)]
        writer.line(f"if (item >= {total}) return;")
        writer.line(f"const int {names[0]} = item % {wide};")
        writer.line(f"const int {names[1]} = item / {wide} % {row_blocks};")
        writer.line(f"const int {names[2]} = item / {wide * row_blocks};")
        values = dict(zip(c.batch, unravel(variable(batch), tuple(v.extent for v in c.batch)), strict=True))
        row_values = self._rows(row_block, values)
        blocks = self._column_blocks(column_block)
        columns = [add(scale(variable(block), LANES), variable(self.lane)) for block in blocks]
        accumulators = self._accumulate(row_values, values, list(zip(blocks, columns, strict=True)))
        epilogue = VectorEpilogue(self.emission, c.n.extent, self.lane, self.kernel.stores)
        for i, at in enumerate(row_values):
            with expressions.scope(self._guard(row_block, i)):
                for j, (block, column) in enumerate(zip(blocks, columns, strict=True)):
                    epilogue.set_accumulator(accumulators[j][i])
                    with expressions.scope(self._column_guard(column_block, j)):
                        epilogue.write({**at, c.n: column}, block)
        return self.emission.source("contraction_tile.cl", total, rows=self.rows, width=LANES * self.vectors)

    def _rows(self, row_block: Var, values: dict[Var, Index]) -> list[dict[Var, Index]]:
        """For each row of the tile the variables in terms of a row number that stays inside the result."""
        c, expressions = self.contraction, self.emission.expressions
        found = []
        for i in range(self.rows):
            row = Var(f"row{i}", self.m_count)
            text = f"{expressions.index(scale(variable(row_block), self.rows))} + {i}"
            self.emission.writer.line(f"const int {expressions.name(row)} = min({text}, {self.m_count - 1});")
            places = unravel(variable(row), tuple(v.extent for v in c.m))
            found.append({**values, **dict(zip(c.m, places, strict=True))})
        return found

    def _column_blocks(self, column_block: Var) -> list[Var]:
        """The work-item's vectors of columns by their numbers, which stay inside the result.

        They stand apart, so that neighbouring work-items read neighbouring vectors.
        """
        if self.vectors == 1:
            return [column_block]
        expressions, found = self.emission.expressions, []
        for j in range(self.vectors):
            block = Var(f"block{j}", self.blocks)
            text = f"{expressions.name(column_block)} + {j * column_block.extent}"
            self.emission.writer.line(f"const int {expressions.name(block)} = min({text}, {self.blocks - 1});")
            found.append(block)
        return found

    def _column_guard(self, column_block: Var, j: int) -> str:
        if self.blocks % self.vectors == 0:
            return ""
        return f"if ({self.emission.expressions.name(column_block)} + {j * column_block.extent} < {self.blocks})"

    def _guard(self, row_block: Var, i: int) -> str:
        if self.m_count % self.rows == 0:
            return ""
        start = self.emission.expressions.index(scale(variable(row_block), self.rows))
        return f"if ({start} + {i} < {self.m_count})"

    def _accumulate(
        self, rows: list[dict[Var, Index]], values: dict[Var, Index], columns: list[tuple[Var, Index]]
    ) -> list[tuple[str, ...]]:
        """The names of the sums, by vector of columns and row."""
        c, expressions = self.contraction, self.emission.expressions
        sums = expressions.declared(Accumulators(("",) * (len(columns) * len(rows)), "float4", "0.0f"))
        *outer, inner = c.k
        right = [(block, substitute_variables(c.b, {**values, c.n: column})) for block, column in columns]
        left = [substitute_variables(c.a, at) for at in rows]
        four = inner.extent % 4 == 0 and all(expressions.is_contiguous(a, inner) for a in left)
        by_column = self._by_column(values, [block for block, _ in columns]) if four else None
        turn = Var(f"{inner.name}_four", inner.extent // 4) if four else inner

        def step(to: Accumulators) -> None:
            names = _by_vector(to.names, len(rows))
            if by_column is not None:
                self._dot_products(inner, turn, left, by_column, names)
            elif four:
                self._four_steps(inner, turn, left, right, names)
            else:
                for (block, b), of_rows in zip(right, names, strict=True):
                    vector = self._right(block, b)
                    for name, a in zip(of_rows, left, strict=True):
                        expressions.writer.line(f"{name} += {expressions.value(a).text} * {vector};")

        loops = [TermLoop(variable=v) for v in (*outer, turn)]
        expressions.sum_loops(in_partial_sums(loops, LONGEST_PRODUCT // 4 if four else LONGEST_PRODUCT), sums, step)
        return _by_vector(sums.names, len(rows))

    def _right(self, block: Var, b: Expr) -> str:
        expressions = self.emission.expressions
        if self.contraction.n.extent % LANES == 0:
            return expressions.spread(expressions.value(b, self.lane), "float32", LANES)
        return self._guarded_right(block, b)

    def _guarded_right(self, block: Var, b: Expr) -> str:
        """A vector of columns whose last lanes may lie outside: zeros there."""
        expressions, writer = self.emission.expressions, self.emission.writer
        n = self.contraction.n.extent
        name = expressions.temporary()
        writer.line(f"float4 {name} = 0.0f;")
        whole, rest = divmod(n, LANES)
        if whole:
            with expressions.scope(f"if ({expressions.name(block)} < {whole})"):
                writer.line(f"{name} = {expressions.spread(expressions.value(b, self.lane), 'float32', LANES)};")
        with expressions.scope(f"if ({expressions.name(block)} == {whole})"):
            open_ = is_symbolic(rest)
            for place in range(LANES - 1 if open_ else rest):
                with expressions.scope(f"if ({place} < {rest})") if open_ else nullcontext():
                    element = expressions.value(substitute_variables(b, {self.lane: Index(place)}))
                    writer.line(f"{name}.s{place} = {element.text};")
        return name

    def _four_steps(
        self, inner: Var, quarter: Var, left: list[Expr], right: list[tuple[Var, Expr]], names: list[tuple[str, ...]]
    ) -> None:
        expressions, lane = self.emission.expressions, Var("lane_k", 4)
        place = add(scale(variable(quarter), 4), variable(lane))
        vectors = [
            expressions.spread(expressions.value(substitute_variables(a, {inner: place}), lane), "float32", 4)
            for a in left
        ]
        for i in range(4):
            at = add(scale(variable(quarter), 4), Index(i))
            for (block, b), of_rows in zip(right, names, strict=True):
                columns = self._right(block, substitute_variables(b, {inner: at}))
                for name, vector in zip(of_rows, vectors, strict=True):
                    expressions.writer.line(f"{name} += {vector}.s{i} * {columns};")

    def _by_column(self, values: dict[Var, Index], blocks: list[Var]) -> list[list[Expr]] | None:
        """The right factor column by column, where it lies along the reduction and not along its columns."""
        c, expressions = self.contraction, self.emission.expressions
        if expressions.is_contiguous(c.b, c.n) or not expressions.is_contiguous(c.b, c.k[-1]):
            return None
        return [
            [substitute_variables(c.b, {**values, c.n: self._column(block, place)}) for place in range(LANES)]
            for block in blocks
        ]

    def _column(self, block: Var, place: int) -> Index:
        """One column of a vector; past the end the last one, whose sums nobody writes."""
        extent, expressions = self.contraction.n.extent, self.emission.expressions
        number = add(scale(variable(block), LANES), Index(place))
        if extent % LANES == 0:
            return number
        column = Var(f"{block.name}_column{place}", extent)
        text = f"min({expressions.index(number)}, {extent - 1})"
        self.emission.writer.line(f"const int {expressions.name(column)} = {text};")
        return variable(column)

    def _dot_products(
        self, inner: Var, quarter: Var, left: list[Expr], right: list[list[Expr]], names: list[tuple[str, ...]]
    ) -> None:
        """Four steps of a reduction along which both factors lie."""
        expressions, lane = self.emission.expressions, Var("lane_k", 4)
        place = {inner: add(scale(variable(quarter), 4), variable(lane))}

        def vector(factor: Expr) -> str:
            return expressions.spread(expressions.value(substitute_variables(factor, place), lane), "float32", 4)

        rows = [vector(a) for a in left]
        for columns, of_rows in zip(right, names, strict=True):
            factors = [vector(b) for b in columns]
            for name, row in zip(of_rows, rows, strict=True):
                dots = ", ".join(f"dot({row}, {f})" for f in factors)
                expressions.writer.line(f"{name} += (float4)({dots});")


def _by_vector(names: tuple[str, ...], rows: int) -> list[tuple[str, ...]]:
    return [names[first : first + rows] for first in range(0, len(names), rows)]


def emit_tile(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction in registers; the kernel's schedule holds `rows` and `columns`."""
    return _Tile(launch, target, tensors).emit()
