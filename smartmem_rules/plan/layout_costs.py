"""What a use of a tensor costs in a layout, in nanoseconds of the memory that it goes through.

A buffer moves its elements, an image whole texels, of which an element that is not beside its neighbour in the lanes
takes one of its own.  Texels come out of the shared cache in lines; a line that only one of its texels is read of
costs as much as one that serves its neighbours too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache

from smartmem_rules.plan.layout_rules import DeviceMemory, LayoutCosts, line_shape
from smartmem_rules.plan.layout_uses import LANES, Lead, Use, Wave, advancing
from smartmem_rules.plan.memory import item_bytes
from smartmem_rules.plan.model import Layout, Stored
from smartmem_rules.tensor.index import Index, Var, add, atom_variables, div, mod, scale, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute

TEXEL_BYTES = 16
"""What textures are as fast as their bandwidth with: their units give texels at one rate, of halves, too."""


class AccessCosts:
    """The costs of uses by the weights of a `layout` block and the bandwidths of a `device` block."""

    def __init__(self, weights: LayoutCosts, memory: DeviceMemory) -> None:
        self.weights = weights
        self.memory = memory

    def of(self, use: Use, stored: Stored, layout: Layout, lead: Lead) -> float:
        """Nanoseconds of a use.

        Args:
            lead: what the kernel takes from the layout of its first output.
        """
        lanes = use.vectors | ({lead.lane} if use.follows and lead.lane is not None else set())
        if layout.memory == "image":
            return self._image(use, stored, layout, lead, lanes)
        return self._buffer(use, stored, layout, lanes)

    def passing(self, stored: Stored) -> float:
        """Nanoseconds in which the tensor goes through a buffer once, element beside element."""
        return largest(stored.type.elements) * item_bytes(stored.storage) / self.memory.buffer

    def _buffer(self, use: Use, stored: Stored, layout: Layout, lanes: frozenset[Var]) -> float:
        moving = advancing(use.indices[layout.order[-1]]) if layout.order else None
        if use.writes:
            excess = 0.0 if moving in lanes else self.weights.scattered_write
        elif moving in lanes or not use.used & lanes:
            excess = 0.0
        else:
            excess = self.weights.strided_read if moving in use.loops else self.weights.scattered_read
        size = item_bytes(stored.storage)
        moved = use.count * size * (1 + excess)
        if stored.role != "input":
            return moved / self.memory.buffer
        # what lies in a buffer in any case is read again out of the shared cache
        once = largest(stored.type.elements) * size
        return min(moved, once) / self.memory.buffer + max(0, moved - once) / self.memory.shared

    def _image(self, use: Use, stored: Stored, layout: Layout, lead: Lead, lanes: frozenset[Var]) -> float:
        size = LANES * item_bytes(stored.storage)
        spread = Spread(use.indices, layout, stored.type.shape, line_shape(self.memory.line, size))
        wave = lead.wave if use.follows else use.wave
        lines = spread.of_neighbours(use.near)
        if wave is not None:
            lines = spread.of_wave(wave, use.loops, layout.lane_axis, self.memory.cached)
        texel = TEXEL_BYTES / self.memory.texture + lines * self.memory.line / self.memory.shared
        return _texels(use, layout, lead, lanes) * texel


def _texels(use: Use, layout: Layout, lead: Lead, lanes: frozenset[Var]) -> float:
    """How many texels a use takes: padding is moved with the elements, and scattered elements take one each."""
    axis = layout.lane_axis
    if axis is not None:
        whole = next((v for v in lanes if fills_texels(use.indices, axis, v)), None)
        if whole is not None:
            extent = largest(whole.extent)
            return use.count / extent * -(-extent // LANES)
        if use.follows and lead.lane is not None and lead.lane not in use.used and not use.used & use.vectors:
            return use.count / LANES
    return use.count


@lru_cache(maxsize=1 << 14)
def fills_texels(indices: tuple[Index, ...], axis: int, var: Var) -> bool:
    """Whether four neighbouring values of the variable are the four lanes of one texel along the axis."""
    if advancing(indices[axis]) != var and var not in indices[axis].variables:
        return False
    if any(var in other.variables for a, other in enumerate(indices) if a != axis):
        return False
    lane = Var("lane", LANES)
    block = Var("block", max(1, largest(var.extent) // LANES))
    moved = substitute(indices[axis], {var: add(scale(variable(block), LANES), variable(lane))})
    return mod(moved, LANES) == variable(lane) and lane not in div(moved, LANES).variables


class Spread:
    """How many lines of an image a use takes for each texel.

    Args:
        line: columns and rows of a line in texels.
    """

    def __init__(
        self, indices: tuple[Index, ...], layout: Layout, shape: tuple[int, ...], line: tuple[int, int]
    ) -> None:
        self.indices = indices
        self.lanes = layout.lane_axis
        across, down = _steps(layout, shape)
        self.beside = {axis: size for axis, size in ((across, line[0]), (down, line[1])) if axis is not None}

    def of_neighbours(self, near: Collection[Var]) -> float:
        """Where only the variables are known along which the next texels lie: a line serves those beside it."""
        served = [size for axis, size in self.beside.items() if advancing(self.indices[axis]) in near]
        return 1 / math.prod(served)

    def of_wave(self, wave: Wave, loops: tuple[Var, ...], lanes: int | None, cached: int) -> float:
        """Where the work-items of a wave are known: the lines that they take together.

        The next turns of the innermost loop take the same lines as long as a texture unit's own cache holds them.
        """
        counts = dict(wave.places)
        once = self._lines(counts, wave.lane)
        moving = [v for v in loops if v != wave.lane and any(v in i.variables for i in self.indices)]
        along = [v for v in moving if lanes is not None and v in self.indices[lanes].variables]
        if moving:
            # the reduction runs along the lanes inside, where it can
            inner = (along or moving)[-1]
            turns = largest(inner.extent)
            while turns > 1:
                together = self._lines({**counts, inner: turns}, wave.lane)
                if together <= cached:
                    texels = -(-turns // LANES) if along else turns
                    return min(once, together / texels) / wave.accesses
                turns //= 2
        return once / wave.accesses

    def _lines(self, counts: Mapping[Var, int], lane: Var | None) -> int:
        """The lines of all places that so many values of the variables lead to."""
        total = 1
        for axis, index in enumerate(self.indices):
            unit = LANES if axis == self.lanes else 1
            places, span = 1, 0
            for atom, coefficient in index.terms:
                number = math.prod(counts.get(v, 1) for v in atom_variables(atom))
                step = abs(largest(coefficient)) * (LANES if atom == lane else 1)
                places *= number
                # what is no plain variable may lie anywhere
                span += (number - 1) * (step if isinstance(atom, Var) else step * LANES * self.beside.get(axis, 1))
            places = min(places, span // unit + 1)
            total *= min(places, -(-(span // unit + 1) // self.beside.get(axis, 1)))
        return total


@lru_cache(maxsize=1 << 12)
def _steps(layout: Layout, shape: tuple[int, ...]) -> tuple[int | None, int | None]:
    """The axes along which the next element or texel is the next one in x and in y."""
    middle, lane = layout.order[layout.rows : -1], layout.lane_axis
    outside = len(middle) - layout.inner
    block = () if lane is None else (lane,)
    across = [*middle[:outside], *block, *middle[outside:]]

    def last(axes: list[int] | tuple[int, ...], unit: int) -> int | None:
        return next((a for a in reversed(axes) if largest(shape[a]) > (unit if a == lane else 1)), None)

    return last(across, LANES), last(layout.order[: layout.rows], 1)
