"""Loads the tiles of a contraction's factors from device memory to the local memory of a work-group."""

from __future__ import annotations

import math
from collections.abc import Callable

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.contraction.epilogue import LANES
from smartmem_rules.emit.contraction.group_copies import copying
from smartmem_rules.emit.contraction.sides import Loading, Side, captured
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import unravel


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
        if last is None or side.by_row or last.extent % LANES != 0 or not contiguous(side.factor, last):
            return self._elements()
        return self._vectors(side.own, side.k, along_reduction=False)

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
            writer = self.emission.writer
            if whole and tile.unit is not None:
                writer.line(f"{tile.unit.name}_keep4({side.name} + {place(0)}, {self.register}[e]);")
            elif whole and self.halves:
                writer.line(f"vstore_half4({self.register}[e], 0, {side.name} + {place(0)});")
            elif whole:
                writer.line(f"*(__local float4*)({side.name} + {place(0)}) = {self.register}[e];")
            else:
                for i in range(LANES):
                    writer.line(self._kept(place(i), f"{self.register}[e].s{i}"))

        return self._loading("float4", count, at, own, reduction, values, lane, keep)

    def _elements(self) -> Loading:
        """One element at a time, neighbouring work-items along the axis that is the closer one in memory."""
        side, tile = self.side, self.tile
        own = Var(f"{side.name}_own", math.prod(v.extent for v in side.own))
        flat = Var(f"{side.name}_k", self.k_count)
        values = dict(zip(side.own, unravel(variable(own), tuple(v.extent for v in side.own)), strict=True))
        values.update(zip(side.k, unravel(variable(flat), tuple(v.extent for v in side.k)), strict=True))
        own_first = bool(side.own) and self.emission.expressions.is_contiguous(side.factor, side.own[-1])
        at, within = f"slot / {tile.step}", f"slot % {tile.step}"
        if own_first:
            at, within = f"slot % {self.extent}", f"slot / {self.extent}"
        inside = self._inside(own, f"{side.first} + at")
        reduction = (flat, f"step * {tile.step} + {within}")

        def keep() -> None:
            self.emission.writer.line(self._kept(self._place(at, within), f"{self.register}[e]"))

        return self._loading("float", tile.step * self.extent, at, inside, reduction, values, None, keep)

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
        self, type_: str, count: int, at: str, own: str, reduction: tuple[Var, str],
        values: dict[Var, Index], lane: Var | None, keep_element: Callable[[], None],
    ) -> Loading:  # fmt: skip
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
            whole = self.k_count % self.tile.step == 0
            writer, name = emission.writer, emission.expressions.name(var)
            writer.line(f"const int at = {at};")
            writer.line(own)
            writer.line(f"const int depth = {text};")
            writer.line(f"const int {name} = {'depth' if whole else f'min(depth, {var.extent - 1})'};")
            value = emission.expressions.value(substitute_variables(self.side.factor, values), lane)
            text = value.text if lane is None else emission.expressions.spread(value, "float32", LANES)
            writer.line(f"{self.register}[e] = {text if whole else f'depth < {var.extent} ? {text} : 0.0f'};")

        return Loading(
            declaration=f"    {type_} {self.register}[{registers}];",
            load=captured(emission, lambda: slots(load)),
            keep=captured(emission, lambda: slots(keep_element)),
            turned=self.turned,
        )
