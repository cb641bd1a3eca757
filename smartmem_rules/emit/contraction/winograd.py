"""Convolutions by Winograd's minimal filtering for CPUs: rows of tiles, transformed, multiplied point by point."""

from __future__ import annotations

import math
from collections.abc import Mapping

from smartmem_rules.emit.c.partial_sums import product_block
from smartmem_rules.emit.c.program import Target, render
from smartmem_rules.emit.contraction.panel import Panel
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.schedule.records import WinogradSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable


class Winograd(Panel):
    """The panel's columns and epilogues over tiles; the kernel's schedule holds `windows` and `transform` too."""

    def __init__(self, launch: Single, target: Target, tensors: Mapping[str, Stored]) -> None:
        kernel = launch.kernel
        super().__init__(launch, target, tensors)
        own = schedule_of(kernel, WinogradSchedule)
        self.windows, self.transform = own.windows, own.transform
        self.channels = self.windows.channel.extent
        self.right_rows = self.transform.points**2 * self.channels

    def emit(self) -> Source:
        s, t, w = self.schedule, self.transform, self.windows
        expressions = self.emission.expressions
        strip, place = Var("strip", w.strips(t)), Var("tile_place", w.across_tiles(t))
        names = {
            "batch": expressions.name(self.batch),
            "row": expressions.name(self.row),
            "strip": expressions.name(strip),
            "place": expressions.name(place),
        }
        most_tiles = -(-min(s.block_rows, self.m_count) // w.grain(t)) * place.extent
        parts = self.columns()
        with expressions.scope(""):
            self._input(strip, place, most_tiles)
        for part in parts:
            part.write_epilogue()
        tiles = sum(part.tiles for part in parts)
        row_blocks = -(-self.m_count // s.block_rows)
        column_blocks = -(-tiles // s.tiles_per_block)
        return self.emission.source(
            "contraction_winograd.cl",
            row_blocks * column_blocks * self.batch.extent,
            rows=s.rows, columns=s.columns, block_rows=s.block_rows, tail=s.tail, tiles_per_block=s.tiles_per_block,
            parts=parts, row_blocks=row_blocks, column_blocks=column_blocks, m=self.m_count, k=self.channels,
            taps=t.taps, outputs=t.outputs, points=t.points, output=t.output, most_tiles=most_tiles,
            across=place.extent, width=w.x.extent, height=math.prod(v.extent for v in (*w.images, w.y)),
            channels=self.emission.width, block=product_block(self.channels), **self.vectors, **names,
        )  # fmt: skip

    def _input(self, strip: Var, place: Var, most_tiles: int) -> None:
        """Transform a tile of the left factor, a vector of channels at a time."""
        expressions, writer = self.emission.expressions, self.emission.writer
        points, width = self.transform.points, self.emission.width
        u, v, lane = Var("u", points), Var("v", points), Var("lane", width)
        block = Var("channel_block", self.channels // width)
        name = expressions.name(block)
        # one vector of channels has its loop too
        first = scale(Index(0, ((block, 1),)), width)
        here = self.windows.element(self.transform, variable(strip), variable(place), variable(u), variable(v))
        values = {**self.values(None), self.windows.channel: add(first, variable(lane))}
        here = substitute_variables(here, values)
        with expressions.scope(f"for (int {name} = 0; {name} < {block.extent}; ++{name})"):
            writer.line(f"float{width} half_done[{points * points}];")
            for body in expressions.border_and_interior(here, (u, v, lane)):
                with expressions.loop(v):
                    self._column(body, u, expressions.name(v), lane)
            target = f"transformed + t * {self.channels} + {expressions.index(first)}"
            stride = most_tiles * self.channels
            names = {"target": target, "stride": stride}
            self._lines("winograd_input.cl", lanes=width, matrix=self.transform.input, points=points, **names)

    def _column(self, body: Expr, u: Var, place: str, lane: Var) -> None:
        expressions, points = self.emission.expressions, self.transform.points
        read = [expressions.value(substitute_variables(body, {u: Index(i)}), lane) for i in range(points)]
        values = [expressions.spread(value, "float32", lane.extent) for value in read]
        names = {"lanes": lane.extent, "place": place}
        self._lines("winograd_columns.cl", matrix=self.transform.input, points=points, values=values, **names)

    def _lines(self, template: str, **values: object) -> None:
        for line in render(template, **values).splitlines():
            if line.strip():
                self.emission.writer.line(line)


def emit_winograd(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A convolution by Winograd's filtering; beside what the panel template takes, its schedule holds the transform."""
    return Winograd(launch, target, tensors).emit()
