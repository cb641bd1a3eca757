"""Contractions in registers: a few rows by one vector of columns for each work-item, from textures or buffers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext

from smartmem_rules.emit.epilogue import LANES, VectorEpilogue
from smartmem_rules.emit.kernel import Emission, Target
from smartmem_rules.plan.model import Contraction, Kernel, Source, Stored
from smartmem_rules.tensor.expr import Expr, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.substitution import unravel

OPEN_GROUP = 16
"""Work-items of a group on a CPU where their number is open: the last group has some that do nothing."""


class _Tile:
    def __init__(self, kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> None:
        assert kernel.contraction is not None
        self.kernel = kernel
        self.target = target
        self.contraction: Contraction = kernel.contraction
        self.rows: int = kernel.schedule["rows"]
        self.emission = Emission(kernel, target, tensors, LANES)
        self.blocks = -(-self.contraction.n.extent // LANES)
        self.m_count = math.prod(v.extent for v in self.contraction.m)
        self.lane = Var("lane", LANES)
        self.block = Var("block", self.blocks)

    def emit(self) -> Source:
        c, writer, expressions = self.contraction, self.emission.writer, self.emission.expressions
        row_blocks = -(-self.m_count // self.rows)
        batch = Var("batch", math.prod(v.extent for v in c.batch))
        block, row_block = self.block, Var("row_block", row_blocks)
        total = batch.extent * row_blocks * self.blocks
        names = [expressions.name(v) for v in (block, row_block, batch)]
        writer.line(f"if (item >= {total}) return;")
        writer.line(f"const int {names[0]} = item % {self.blocks};")
        writer.line(f"const int {names[1]} = item / {self.blocks} % {row_blocks};")
        writer.line(f"const int {names[2]} = item / {self.blocks * row_blocks};")
        values = dict(zip(c.batch, unravel(variable(batch), tuple(v.extent for v in c.batch)), strict=True))
        row_values = self._rows(row_block, values)
        column = add(scale(variable(block), LANES), variable(self.lane))
        accumulators = self._accumulate(row_values, values, column)
        epilogue = VectorEpilogue(self.emission, c.n.extent, self.lane, self.kernel.stores)
        for i, at in enumerate(row_values):
            with expressions.scope(self._guard(row_block, i)):
                epilogue.set_accumulator(accumulators[i])
                epilogue.write({**at, c.n: column}, block)
        if self.target.is_cpu:
            local = self._local(total)
            size = (-(-total // local[0]) * local[0],)
        else:
            size, local = (-(-total // 64) * 64,), (64,)
        return self.emission.source("contraction_tile.cl", size, local, rows=self.rows, width=LANES)

    @staticmethod
    def _local(total: int) -> tuple[int, ...]:
        if is_symbolic(total):
            return (OPEN_GROUP,)
        return (next(size for size in (16, 8, 4, 2, 1) if total % size == 0),)

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

    def _guard(self, row_block: Var, i: int) -> str:
        if self.m_count % self.rows == 0:
            return ""
        start = self.emission.expressions.index(scale(variable(row_block), self.rows))
        return f"if ({start} + {i} < {self.m_count})"

    def _accumulate(self, rows: list[dict[Var, Index]], values: dict[Var, Index], column: Index) -> list[str]:
        c, writer, expressions = self.contraction, self.emission.writer, self.emission.expressions
        names = [expressions.temporary() for _ in rows]
        for name in names:
            writer.line(f"float4 {name} = 0.0f;")
        *outer, inner = c.k
        b = substitute_variables(c.b, {**values, c.n: column})
        left = [substitute_variables(c.a, at) for at in rows]

        def step() -> None:
            if inner.extent % 4 == 0 and all(expressions.is_contiguous(a, inner) for a in left):
                self._four_steps(inner, left, b, names)
            else:
                with expressions.loop(inner):
                    right = self._right(b)
                    for name, a in zip(names, left, strict=True):
                        writer.line(f"{name} += {expressions.value(a).text} * {right};")

        self._nest(tuple(outer), step)
        return names

    def _right(self, b: Expr) -> str:
        expressions = self.emission.expressions
        if self.contraction.n.extent % LANES == 0:
            return expressions.spread(expressions.value(b, self.lane), "float32", LANES)
        return self._guarded_right(b)

    def _guarded_right(self, b: Expr) -> str:
        """A vector of columns whose last lanes may lie outside: zeros there."""
        expressions, writer = self.emission.expressions, self.emission.writer
        n = self.contraction.n.extent
        block = self.block
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

    def _four_steps(self, inner: Var, left: list[Expr], b: Expr, names: list[str]) -> None:
        expressions, writer = self.emission.expressions, self.emission.writer
        quarter, lane = Var(f"{inner.name}_four", inner.extent // 4), Var("lane_k", 4)
        place = add(scale(variable(quarter), 4), variable(lane))
        with expressions.loop(quarter):
            vectors = [
                expressions.spread(expressions.value(substitute_variables(a, {inner: place}), lane), "float32", 4)
                for a in left
            ]
            for i in range(4):
                at = add(scale(variable(quarter), 4), Index(i))
                right = self._right(substitute_variables(b, {inner: at}))
                for name, vector in zip(names, vectors, strict=True):
                    writer.line(f"{name} += {vector}.s{i} * {right};")

    def _nest(self, axes: tuple[Var, ...], inner: object) -> None:
        if not axes:
            inner()  # type: ignore[operator]
            return
        with self.emission.expressions.loop(axes[0]):
            self._nest(axes[1:], inner)


def emit_tile(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction in registers; the kernel's schedule holds `rows`."""
    return _Tile(kernel, target, tensors).emit()
