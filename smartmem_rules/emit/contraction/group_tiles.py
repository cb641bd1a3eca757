"""Loads the tiles of a contraction's factors from device memory to the local memory of a work-group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.contraction.epilogue import LANES
from smartmem_rules.emit.contraction.group_copies import copying
from smartmem_rules.emit.contraction.sides import Loading, Side, captured
from smartmem_rules.plan.kernel.addressing import advance, offset
from smartmem_rules.plan.schedule.contraction.group import FLOAT_BYTES, GroupTile
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import reads, substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import lookup, unravel

_PIECE_BYTES = 32
"""What devices bring from memory at least."""


def loading(emission: Emission, tile: GroupTile, side: Side) -> Loading:
    """The tile's copy where the device makes one, else by way of registers.

    There vectors along the reduction or along the factor's own axis are taken, where its elements lie side by side,
    else elements.
    """
    return copying(emission, tile, side) or _Loader(emission, tile, side).loading()


class _Loader:
    def __init__(self, emission: Emission, tile: GroupTile, side: Side) -> None:
        self.emission = emission
        self.side = side
        self.tile = tile
        self.extent = tile.rows if side.name == "left" else tile.columns
        self.k_count = math.prod(v.extent for v in side.k)
        self.register = f"{side.name}_next"
        self.turned = False
        self.halves = (tile.left_type if side.name == "left" else tile.right_type) == "half"

    def loading(self) -> Loading:
        side, contiguous = self.side, self.emission.expressions.is_contiguous
        if side.k[-1].extent % LANES == 0 and contiguous(side.factor, side.k[-1]):
            self.turned = side.name == "right" and self.tile.unit is not None
            return self._vectors(side.k, side.own, along_reduction=True)
        last = side.own[-1] if side.own else None
        if last is not None and not side.by_row and last.extent % LANES == 0 and contiguous(side.factor, last):
            return self._vectors(side.own, side.k, along_reduction=False)
        return self._elements_of_rows() if self._rows_are_closer() else self._elements()

    def _place(self, own: str, k: str) -> str:
        """The address in the tile of an element, given its places along the factor's own axis and the reduction."""
        if self.side.name == "left":
            return self.tile.left_place(own, k)
        return self.tile.right_place(own, k, self.turned)

    def _vectors(self, along: tuple[Var, ...], across: tuple[Var, ...], along_reduction: bool) -> Loading:
        """Four neighbouring elements at a time; `along` are the axes whose last one is contiguous."""
        side, tile = self.side, self.tile
        quads = (tile.step if along_reduction else self.extent) // LANES
        count = quads * (self.extent if along_reduction else tile.step)
        quad = Var(f"{side.name}_quad", -(-math.prod(v.extent for v in along) // LANES))
        other = Var(f"{side.name}_other", math.prod(v.extent for v in across))
        lane = Var("lane", LANES)
        *outer, last = unravel(variable(quad), (*(v.extent for v in along[:-1]), along[-1].extent // LANES))
        values = dict(zip(along[:-1], outer, strict=True))
        values[along[-1]] = add(scale(last, LANES), variable(lane))
        values.update(zip(across, unravel(variable(other), tuple(v.extent for v in across)), strict=True))
        if along_reduction:
            at, within = f"slot / {quads}", f"slot % {quads}"
            own = self._inside(other, f"{side.first} + at")
            reduction = (quad, f"step * {tile.step // LANES} + {within}")
        else:
            at, within = f"slot % {quads}", f"slot / {quads}"
            own = self._inside(quad, f"({side.first}) / {LANES} + at")
            reduction = (other, f"step * {tile.step} + {within}")

        def place(i: int) -> str:
            if along_reduction:
                return self._place(at, f"{within} * {LANES} + {i}")
            return self._place(f"{at} * {LANES} + {i}", within)

        # four elements of a row of the tile stay side by side: rows of the left factor run along the reduction
        whole = along_reduction == (side.name == "left" or self.turned)

        def keep() -> None:
            if whole:
                self.emission.writer.line(self._kept_whole(place(0)))
                return
            for i in range(LANES):
                self.emission.writer.line(self._kept(place(i), f"{self.register}[e].s{i}"))

        return self._loading("float4", count, at, own, reduction, self._vector(values, lane, reduction[0]), keep)

    def _vector(self, values: dict[Var, Index], lane: Var, places: Var) -> Callable[[], str]:
        """Emits neighbouring elements, zeros behind the reduction's end."""

        def emit() -> str:
            expressions = self.emission.expressions
            value = expressions.value(substitute_variables(self.side.factor, values), lane)
            text = expressions.spread(value, "float32", LANES)
            # quads along the reduction, or its places one by one
            return text if self._whole_steps else f"depth < {places.extent} ? {text} : 0.0f"

        return emit

    def _within(self, text: str, place: str) -> str:
        """The text of an element, zero at a place behind the reduction's end."""
        return text if self._whole_steps else f"{place} < {self.k_count} ? {text} : 0.0f"

    @property
    def _whole_steps(self) -> bool:
        return self.k_count % self.tile.step == 0

    def _rows_are_closer(self) -> bool:
        """Whether neighbouring work-items load fewer lines of memory along the left factor's rows than along its depth.

        With a row for itself, a work-item knows the row's address for all its elements: images of three channels.
        """
        side = self.side
        if side.name != "left" or side.by_row or not side.own or self.tile.step % LANES != 0:
            return False
        rows, depth = (self._lines(var) for var in (side.own[-1], side.k[-1]))
        return rows is not None and (depth is None or rows <= depth)

    def _lines(self, along: Var) -> int | None:
        """Pieces of memory that a sub-group along an axis reads; None where the axis has steps of several sizes."""
        lanes, found = self.tile.subgroup, 0
        for read in reads(self.side.factor):
            if read.tensor in self.emission.expressions.internal:
                continue
            access = self.emission.accesses[read.tensor]
            if access.stored.layout.memory != "buffer":
                return None
            step = advance(offset(access.stored, read.indices), along)
            if step is None:
                return None
            run = min(lanes, along.extent)
            # a run begins anywhere in its first piece
            found += -(-lanes // run) * (1 + -(-run * abs(step) * FLOAT_BYTES // _PIECE_BYTES))
        return found

    def _elements_of_rows(self) -> Loading:
        """Four places of the reduction for one row at a time, neighbouring work-items with neighbouring rows."""
        side, tile = self.side, self.tile
        own, rows = self._flat_own()
        whole = -(-self.k_count // tile.step) * tile.step
        flats = tuple(Var(f"{side.name}_k{i}", whole) for i in range(LANES))
        at, within = f"slot % {self.extent}", f"slot / {self.extent}"

        def emit() -> str:
            expressions, texts = self.emission.expressions, []
            for i, flat in enumerate(flats):
                place = f"depth * {LANES} + {i}"
                self.emission.writer.line(f"const int {expressions.name(flat)} = {place};")
                value = expressions.value(substitute_variables(side.factor, {**rows, **self._listed_depth(flat)}))
                texts.append(self._within(value.text, place))
            return f"(float4)({', '.join(texts)})"

        def keep() -> None:
            self.emission.writer.line(self._kept_whole(self._place(at, f"({within}) * {LANES}")))

        count = tile.step // LANES * self.extent
        reduction = f"step * {tile.step // LANES} + {within}"
        inside = self._inside(own, f"{side.first} + at")
        found = self._loading("float4", count, at, inside, (None, reduction), emit, keep)
        return replace(found, written_out=True)

    def _flat_own(self) -> tuple[Var, dict[Var, Index]]:
        """A variable that numbers the places along the factor's own axes, and these axes' values by it."""
        axes = self.side.own
        own = Var(f"{self.side.name}_own", math.prod(v.extent for v in axes))
        return own, dict(zip(axes, unravel(variable(own), tuple(v.extent for v in axes)), strict=True))

    def _flat_depth(self, flat: Var) -> dict[Var, Index]:
        """The values of the reduction's axes by a variable that numbers its places."""
        axes = self.side.k
        return dict(zip(axes, unravel(variable(flat), tuple(v.extent for v in axes)), strict=True))

    def _listed_depth(self, flat: Var) -> dict[Var, Index]:
        """The same from tables, which hold the last place for those behind the reduction's end.

        All work-items of a sub-group read the same entry; each would divide for itself.
        """
        axes = self.side.k
        inside = np.minimum(np.arange(flat.extent), self.k_count - 1)
        columns = np.unravel_index(inside, [v.extent for v in axes])
        return {v: lookup(tuple(map(int, c)), variable(flat)) for v, c in zip(axes, columns, strict=True)}

    def _elements(self) -> Loading:
        """One element at a time, neighbouring work-items along the axis that is the closer one in memory."""
        side, tile = self.side, self.tile
        own, values = self._flat_own()
        flat = Var(f"{side.name}_k", self.k_count)
        values.update(self._flat_depth(flat))
        own_first = bool(side.own) and self.emission.expressions.is_contiguous(side.factor, side.own[-1])
        at, within = f"slot / {tile.step}", f"slot % {tile.step}"
        if own_first:
            at, within = f"slot % {self.extent}", f"slot / {self.extent}"
        inside = self._inside(own, f"{side.first} + at")
        reduction = (flat, f"step * {tile.step} + {within}")

        def emit() -> str:
            value = self.emission.expressions.value(substitute_variables(side.factor, values))
            return self._within(value.text, "depth")

        def keep() -> None:
            self.emission.writer.line(self._kept(self._place(at, within), f"{self.register}[e]"))

        return self._loading("float", tile.step * self.extent, at, inside, reduction, emit, keep)

    def _kept_whole(self, place: str) -> str:
        """A statement that writes four neighbours of a row of the tile."""
        if self.tile.unit is not None:
            return f"{self.tile.unit.name}_keep4({self.side.name} + {place}, {self.register}[e]);"
        if self.halves:
            return f"vstore_half4({self.register}[e], 0, {self.side.name} + {place});"
        return f"*(__local float4*)({self.side.name} + {place}) = {self.register}[e];"

    def _kept(self, place: str, value: str) -> str:
        """A statement that writes one element of the tile."""
        if self.tile.unit is not None:
            return f"{self.tile.unit.name}_keep({self.side.name} + {place}, {value});"
        if self.halves:
            return f"vstore_half({value}, {place}, {self.side.name});"
        return f"{self.side.name}[{place}] = {value};"

    def _inside(self, var: Var, text: str) -> str:
        """The declaration of a place that stays inside the factor."""
        return f"const int {self.emission.expressions.name(var)} = min({text}, {var.extent - 1});"

    def _loading(
        self, type_: str, count: int, at: str, own: str, reduction: tuple[Var | None, str],
        emit: Callable[[], str], keep_element: Callable[[], None],
    ) -> Loading:  # fmt: skip
        """Loads by way of registers.

        Args:
            type_: of a register; `count` of them are a tile.
            at, own: C text of a register's place along the factor's own axis, and its declaration.
            reduction: C text of its place along the reduction, and the variable that has this value, if there is one.
            emit: writes what loads it, and gives its text.
            keep_element: writes what brings it to local memory.
        """
        registers = -(-count // self.tile.threads)
        guard = "" if count % self.tile.threads == 0 else f"if (slot < {count})"
        emission = self.emission

        def slots(body: Callable[[], None]) -> None:
            emission.writer.line("#pragma unroll")
            with emission.expressions.scope(f"for (int e = 0; e < {registers}; ++e)"):
                emission.writer.line(f"const int slot = e * {self.tile.threads} + thread;")
                with emission.expressions.scope(guard):
                    body()

        def load() -> None:
            var, text = reduction
            writer = emission.writer
            writer.line(f"const int at = {at};")
            writer.line(own)
            writer.line(f"const int depth = {text};")
            if var is not None:
                inside = "depth" if self._whole_steps else f"min(depth, {var.extent - 1})"
                writer.line(f"const int {emission.expressions.name(var)} = {inside};")
            writer.line(f"{self.register}[e] = {emit()};")

        return Loading(
            declaration=f"    {type_} {self.register}[{registers}];",
            load=captured(emission, lambda: slots(load)),
            keep=captured(emission, lambda: slots(keep_element)),
            turned=self.turned,
        )
