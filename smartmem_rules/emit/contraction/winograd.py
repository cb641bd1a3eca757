"""Convolutions by Winograd's minimal filtering for CPUs: rows of tiles, transformed, multiplied point by point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from smartmem_rules.emit.c.partial_sums import product_block
from smartmem_rules.emit.c.program import Target, render
from smartmem_rules.emit.c.writer import Writer
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
        self.own = schedule_of(kernel, WinogradSchedule)
        self.windows, self.transform = self.own.windows, self.own.transform
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
        patch = self._apart(lambda: self._patch(strip, place))
        for part, factor in zip(parts, self.own.direct, strict=True):
            part.set_direct(factor)
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
            channels=self.emission.width, block=product_block(self.channels), data=self.own.data,
            patch=patch, **self.vectors, **names,
        )  # fmt: skip

    def _input(self, strip: Var, place: Var, most_tiles: int) -> None:
        """Transform a tile of the left factor, a vector of channels at a time."""
        expressions, writer = self.emission.expressions, self.emission.writer
        points, width = self.transform.points, self.emission.width
        u, v, lane = Var("u", points), Var("v", points), Var("lane", width)
        block = Var("channel_block", self.channels // width)
        name = expressions.name(block)
        first = scale(_block_index(block), width)
        here = self._element(strip, place, u, v, add(first, variable(lane)))
        with expressions.scope(f"for (int {name} = 0; {name} < {block.extent}; ++{name})"):
            writer.line(f"float{width} half_done[{points * points}];")
            for body in expressions.border_and_interior(here, (u, v, lane)):
                with expressions.loop(v):
                    self._column(body, u, expressions.name(v), lane)
            target = f"transformed + t * {self.channels} + {expressions.index(first)}"
            stride = most_tiles * self.channels
            names = {"target": target, "stride": stride}
            self._lines("winograd_input.cl", lanes=width, matrix=self.transform.input, points=points, **names)

    def _element(self, strip: Var, place: Var, u: Var, v: Var, channel: Index) -> Expr:
        """The left factor at place (u, v) of a tile."""
        here = self.windows.element(self.transform, variable(strip), variable(place), variable(u), variable(v))
        return substitute_variables(here, {**self.values(None), self.windows.channel: channel})

    def _apart(self, write: Callable[[], None]) -> str:
        """The text of what stands elsewhere in the template, for data that seldom occurs: short rather than fast."""
        emission, expressions = self.emission, self.emission.expressions
        body, splits, own = emission.writer, expressions.splits_borders, Writer()
        emission.writer = expressions.writer = own
        expressions.splits_borders = False
        with expressions.scope(""):
            write()
        expressions.splits_borders = splits
        emission.writer = expressions.writer = body
        return own.text()

    def _patch(self, strip: Var, place: Var) -> None:
        """A tile of the left factor as it is: all channels of each place."""
        expressions, writer = self.emission.expressions, self.emission.writer
        points, width = self.transform.points, self.emission.width
        u, v, lane = Var("u", points), Var("v", points), Var("lane", width)
        block = Var("channel_block", self.channels // width)
        name, first = expressions.name(block), scale(_block_index(block), width)
        here = self._element(strip, place, u, v, add(first, variable(lane)))
        head = f"for (int {name} = 0; {name} < {block.extent}; ++{name})"
        with expressions.loop(u), expressions.loop(v), expressions.scope(head):
            value = expressions.spread(expressions.value(here, lane), "float32", width)
            at = add(scale(add(scale(variable(u), points), variable(v)), self.channels), first)
            writer.line(f"*(smr_float{width}*)(patch + {expressions.index(at)}) = {value};")

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


def _block_index(block: Var) -> Index:
    """The number of a block of channels: a single one has its loop too."""
    return Index(0, ((block, 1),))


def emit_winograd(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A convolution by Winograd's filtering; beside what the panel template takes, its schedule holds the transform."""
    return Winograd(launch, target, tensors).emit()
