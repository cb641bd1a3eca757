"""Copies tiles of a contraction's factors to local memory as they lie in device memory, without registers between."""

from __future__ import annotations

import math

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.contraction.sides import Loading, Side, captured
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.plan.kernel.addressing import consecutive, offset
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Condition,
    Const,
    Expr,
    Read,
    Select,
    condition_indices,
    substitute_variables,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import unravel

_PIECE_BYTES = 16
"""What one work-item copies at a time."""


@dataclass(frozen=True, kw_only=True)
class _Chunks:
    """How a tile is cut into pieces whose elements lie side by side.

    Attributes:
        along: the axes whose last one is contiguous, `across` all others.
        at: the vector's place along the factor's own axis, in pieces where they lie along it.
        own, reduction: the variables of both directions, and C text of their values.
        values: the factor's variables.
        count: pieces of a tile.
    """

    count: int
    at: str
    within: str
    own: tuple[Var, str]
    reduction: tuple[Var, str]
    values: dict[Var, Index]
    lane: Var


def copying(emission: Emission, tile: GroupTile, side: Side) -> Loading | None:
    """The copy of a tile; None where the device has none, or its elements are computed, converted or scattered."""
    unit = tile.unit
    if unit is None or not unit.chunk or tile.buffers < 2 or side.by_row:
        return None
    return _Copier(emission, tile, side, unit).loading()


class _Copier:
    def __init__(self, emission: Emission, tile: GroupTile, side: Side, unit: Matrix) -> None:
        self.emission = emission
        self.tile = tile
        self.side = side
        self.unit = unit
        self.extent = tile.rows if side.name == "left" else tile.columns

    def loading(self) -> Loading | None:
        side, chunk = self.side, self.unit.chunk
        if is_symbolic(math.prod(v.extent for v in (*side.own, *side.k))):
            return None
        if side.k[-1].extent % chunk == 0 and self.tile.step % chunk == 0:
            found = self._copy(self._along_reduction(), turned=side.name == "right")
            if found is not None:
                return found
        if side.name == "right" and side.own and side.own[-1].extent % chunk == 0 and self.extent % chunk == 0:
            return self._copy(self._along_own(), turned=False)
        return None

    def _along_reduction(self) -> _Chunks:
        side, tile, chunk = self.side, self.tile, self.unit.chunk
        pieces = tile.step // chunk
        quad = Var(f"{side.name}_chunk", math.prod(v.extent for v in side.k) // chunk)
        other = Var(f"{side.name}_other", math.prod(v.extent for v in side.own))
        at, within = f"slot / {pieces}", f"slot % {pieces}"
        return _Chunks(
            count=pieces * self.extent,
            at=at,
            within=within,
            own=(other, f"{side.first} + at"),
            reduction=(quad, f"step * {pieces} + {within}"),
            values=_places(quad, other, side.k, side.own, chunk),
            lane=_lane(chunk),
        )

    def _along_own(self) -> _Chunks:
        side, tile, chunk = self.side, self.tile, self.unit.chunk
        pieces = self.extent // chunk
        quad = Var(f"{side.name}_chunk", math.prod(v.extent for v in side.own) // chunk)
        other = Var(f"{side.name}_other", math.prod(v.extent for v in side.k))
        at, within = f"slot % {pieces}", f"slot / {pieces}"
        return _Chunks(
            count=pieces * tile.step,
            at=at,
            within=within,
            own=(quad, f"({side.first}) / {chunk} + at"),
            reduction=(other, f"step * {tile.step} + {within}"),
            values=_places(quad, other, side.own, side.k, chunk),
            lane=_lane(chunk),
        )

    def _copy(self, chunks: _Chunks, turned: bool) -> Loading | None:
        found = self._source(chunks)
        if found is None:
            return None
        parameter, start, conditions = found
        place = self._place(chunks, turned)

        def text(into: str) -> str:
            return captured(self.emission, lambda: self._write(chunks, parameter, start, conditions, into))

        return Loading(copy=text(place), fetch=text(""), turned=turned)

    def _source(self, chunks: _Chunks) -> tuple[str, Index, list[Condition]] | None:
        """The tensor's parameter, where the piece begins in it, and on what conditions it counts."""
        conditions: list[Condition] = []
        factor: Expr = substitute_variables(self.side.factor, chunks.values)
        while isinstance(factor, Select):
            if not (isinstance(factor.otherwise, Const) and factor.otherwise.value == 0):
                return None
            if any(chunks.lane in i.variables or i.gathered for i in condition_indices(factor.condition)):
                return None
            conditions.append(factor.condition)
            factor = factor.then
        if not isinstance(factor, Read) or factor.tensor in self.emission.expressions.internal:
            return None
        access = self.emission.accesses[factor.tensor]
        if access.stored.layout.memory != "buffer" or access.stored.storage != self.unit.factors:
            return None
        if any(index.gathered for index in factor.indices):
            return None
        start = consecutive(offset(access.stored, factor.indices), chunks.lane)
        if start is None or not start.is_multiple_of(self.unit.chunk):
            return None
        return access.parameter, start, conditions

    def _place(self, chunks: _Chunks, turned: bool) -> str:
        """The piece's address in the tile."""
        tile, chunk = self.tile, self.unit.chunk
        if self.side.name == "left":
            return tile.left_place(chunks.at, f"({chunks.within}) * {chunk}")
        if turned:
            return tile.right_place(chunks.at, f"({chunks.within}) * {chunk}", turned)
        return tile.right_place(f"({chunks.at}) * {chunk}", chunks.within, turned)

    def _write(self, chunks: _Chunks, parameter: str, start: Index, conditions: list[Condition], place: str) -> None:
        emission, threads = self.emission, self.tile.threads
        expressions, writer = emission.expressions, emission.writer
        writer.line("#pragma unroll")
        with expressions.scope(f"for (int e = 0; e < {-(-chunks.count // threads)}; ++e)"):
            writer.line(f"const int slot = e * {threads} + thread;")
            with expressions.scope("" if chunks.count % threads == 0 else f"if (slot < {chunks.count})"):
                (own, at), (reduction, depth) = chunks.own, chunks.reduction
                whole = math.prod(v.extent for v in self.side.k) % self.tile.step == 0
                writer.line(f"const int at = {chunks.at};")
                writer.line(f"const int {expressions.name(own)} = min({at}, {own.extent - 1});")
                writer.line(f"const int depth = {depth};")
                inside = "depth" if whole else f"min(depth, {reduction.extent - 1})"
                writer.line(f"const int {expressions.name(reduction)} = {inside};")
                tests = [] if whole else [f"depth < {reduction.extent}"]
                tests += [f"({expressions.condition(c)})" for c in conditions]
                counts = " && ".join(tests) or "1"
                name = self.unit.name
                source = f"{parameter} + {expressions.index(start)}"
                kind = f"(__global const {name}_element*)"
                if conditions:  # the address may lie outside of the tensor
                    writer.line(f"const int counts = {counts};")
                    source = f"(counts ? {expressions.index(start)} : 0)"
                    source, counts = f"{parameter} + {source}", "counts"
                if place:
                    writer.line(f"{name}_copy({self.side.name}_into + {place}, {kind}({source}), {counts});")
                else:  # one prefetch brings several pieces
                    pieces = emission.target.device.text.prefetch_bytes // _PIECE_BYTES
                    writer.line(f"if (slot % {pieces} == 0) SMR_PREFETCH({kind}({source}));")


def _places(quad: Var, other: Var, along: tuple[Var, ...], across: tuple[Var, ...], chunk: int) -> dict[Var, Index]:
    """The factor's variables, given the number of the piece along its contiguous axis and the place across it."""
    *outer, last = unravel(variable(quad), (*(v.extent for v in along[:-1]), along[-1].extent // chunk))
    values = dict(zip(along[:-1], outer, strict=True))
    values[along[-1]] = add(scale(last, chunk), variable(_lane(chunk)))
    values.update(zip(across, unravel(variable(other), tuple(v.extent for v in across)), strict=True))
    return values


def _lane(chunk: int) -> Var:
    return Var("lane", chunk)
