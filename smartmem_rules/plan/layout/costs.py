"""What a use of a tensor costs in a layout, in nanoseconds of the memory that it goes through.

A buffer moves its elements, an image whole texels, of which an element that is not beside its neighbour in the lanes
takes one of its own.  Texels come out of the shared cache in lines; a line that only one of its texels is read of
costs as much as one that serves its neighbours too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.plan.kernel.model import Layout, Stored
from smartmem_rules.plan.kernel.storage import TEXEL_LANES, item_bytes
from smartmem_rules.plan.layout.accesses import Use, VectorAxis, Wave, advancing
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute

TEXEL_BYTES = 16
"""What textures are as fast as their bandwidth with: their units give texels at one rate, of halves, too."""


class AccessCosts:
    """The costs of uses by the weights of a `layout` block and the bandwidths of a `device` block."""

    def __init__(self, weights: LayoutWeights, device: Device) -> None:
        self.weights = weights
        self.memory, self.caches = device.memory, device.caches

    def of(self, use: Use, stored: Stored, layout: Layout, lead: VectorAxis) -> float:
        """Nanoseconds of a use.

        Args:
            lead: what the kernel takes from the layout of its first output.
        """
        lanes = use.vectors | ({lead.lane} if use.follows and lead.lane is not None else set())
        if layout.memory == "image":
            return self._image(use, stored, layout, lead, lanes)
        return self._buffer(use, stored, layout, lead, lanes)

    def passing(self, stored: Stored) -> float:
        """Nanoseconds in which the tensor goes through a buffer once, element beside element."""
        return largest(stored.type.elements) * item_bytes(stored.storage) / self.memory.global_bandwidth

    def _buffer(self, use: Use, stored: Stored, layout: Layout, lead: VectorAxis, lanes: frozenset[Var]) -> float:
        moving = advancing(use.indices[layout.order[-1]]) if layout.order else None
        if use.writes:
            excess = 0.0 if moving in lanes else self.weights.scattered_write
        elif moving in lanes or not use.used & lanes:
            excess = 0.0
        else:
            excess = self.weights.strided_read if moving in use.loops else self.weights.scattered_read
        size = item_bytes(stored.storage)
        moved = use.count * size * (1 + excess)
        wave = lead.wave if use.follows else use.wave
        if wave is not None and layout.order and stored.role != "input":
            # beside images, lines count here as they do there, but for the texture units' caches
            spread = Spread(
                use.indices,
                layout.order[-1],
                {layout.order[-1]: max(1, self.caches.cache_line // (TEXEL_LANES * size))},
            )
            lines = spread.of_wave(wave, (), 0) * (use.count if excess else use.count / TEXEL_LANES)
            return moved / self.memory.global_bandwidth + lines * self.caches.cache_line / self.memory.shared
        if stored.role != "input":
            return moved / self.memory.global_bandwidth
        # what lies in a buffer in any case is read again out of the shared cache
        once = largest(stored.type.elements) * size
        return min(moved, once) / self.memory.global_bandwidth + max(0, moved - once) / self.memory.shared

    def _image(self, use: Use, stored: Stored, layout: Layout, lead: VectorAxis, lanes: frozenset[Var]) -> float:
        size = TEXEL_LANES * item_bytes(stored.storage)
        columns, rows = self.caches.line_shape(size)
        across, down = _steps(layout, stored.type.shape)
        beside = {axis: length for axis, length in ((across, columns), (down, rows)) if axis is not None}
        spread = Spread(use.indices, layout.lane_axis, beside)
        wave = lead.wave if use.follows else use.wave
        lines = spread.of_neighbours(use.near)
        if wave is not None:
            lines = spread.of_wave(wave, use.loops, self.caches.texture_lines)
        texel = TEXEL_BYTES / self.memory.texture_bandwidth + lines * self.caches.cache_line / self.memory.shared
        return _texels(use, layout, lead, lanes) * texel


def _texels(use: Use, layout: Layout, lead: VectorAxis, lanes: frozenset[Var]) -> float:
    """How many texels a use takes: padding is moved with the elements, and scattered elements take one each."""
    axis = layout.lane_axis
    if axis is not None:
        whole = next((v for v in lanes if fills_texels(use.indices, axis, v)), None)
        if whole is not None:
            extent = largest(whole.extent)
            return use.count / extent * -(-extent // TEXEL_LANES)
        if use.follows and lead.lane is not None and lead.lane not in use.used and not use.used & use.vectors:
            return use.count / TEXEL_LANES
    return use.count


@lru_cache(maxsize=1 << 14)
def fills_texels(indices: tuple[Index, ...], axis: int, var: Var) -> bool:
    """Whether four neighbouring values of the variable are the four lanes of one texel along the axis."""
    if advancing(indices[axis]) != var and var not in indices[axis].variables:
        return False
    if any(var in other.variables for a, other in enumerate(indices) if a != axis):
        return False
    lane = Var("lane", TEXEL_LANES)
    block = Var("block", max(1, largest(var.extent) // TEXEL_LANES))
    moved = substitute(indices[axis], {var: add(scale(variable(block), TEXEL_LANES), variable(lane))})
    return mod(moved, TEXEL_LANES) == variable(lane) and lane not in div(moved, TEXEL_LANES).variables


@dataclass(frozen=True)
class Spread:
    """How many cache lines a use takes for each texel.

    Attributes:
        lanes: the axis of which a texel holds four elements.
        beside: how many neighbouring elements or texels along an axis lie in one line.
    """

    indices: tuple[Index, ...]
    lanes: int | None
    beside: Mapping[int, int]

    def of_neighbours(self, near: Collection[Var]) -> float:
        """Where only the variables are known along which the next texels lie: a line serves those beside it."""
        served = [size for axis, size in self.beside.items() if advancing(self.indices[axis]) in near]
        return 1 / math.prod(served)

    def of_wave(self, wave: Wave, loops: tuple[Var, ...], cached: int) -> float:
        """Where the work-items of a wave are known: the lines that they take together.

        The next turns of the innermost loop take the same lines as long as a texture unit's own cache holds them.
        """
        once = self._lines(_spans(self.indices, wave, None, 1))
        moving = [v for v in loops if v != wave.lane and any(v in i.variables for i in self.indices)]
        along = [v for v in moving if self.lanes is not None and v in self.indices[self.lanes].variables]
        if moving:
            # the reduction runs along the lanes inside, where it can
            inner = (along or moving)[-1]
            turns = largest(inner.extent)
            while turns > 1:
                together = self._lines(_spans(self.indices, wave, inner, turns))
                if together <= cached:
                    texels = -(-turns // TEXEL_LANES) if along else turns
                    return min(once, together / texels) / wave.accesses
                turns //= 2
        return once / wave.accesses

    def _lines(self, spans: tuple[tuple[tuple[int, int], ...], int]) -> int:
        """The lines of so many places in all, with so many indices along each axis, which lie so far apart."""
        total, (by_axis, points) = 1, spans
        for axis, (places, span) in enumerate(by_axis):
            if places > 1:
                reach = span // (TEXEL_LANES if axis == self.lanes else 1) + 1
                total *= min(places, reach, -(-reach // self.beside.get(axis, 1)))
        return min(total, points)


ANYWHERE = 1 << 10
"""How far apart the values of an index lie at most that is no sum of variables."""


@lru_cache(maxsize=1 << 14)
def _spans(
    indices: tuple[Index, ...], wave: Wave, loop: Var | None, turns: int
) -> tuple[tuple[tuple[int, int], ...], int]:
    """For each index how many values it takes over a wave and the turns of a loop, and how far apart they lie.

    The second is the number of places that all of them together lead to at most.
    """
    counts = dict(wave.places)
    if loop is not None:
        counts[loop] = turns
    found = []
    for index in indices:
        places, span = 1, 0
        for atom, coefficient in index.terms:
            if isinstance(atom, Var):
                number, reach = counts.get(atom, 1), TEXEL_LANES if atom == wave.lane else 1
            else:
                number, reach = math.prod(counts.get(v, 1) for v in atom.variables), ANYWHERE
            if number > 1:
                places *= number
                span += (number - 1) * reach * abs(largest(coefficient))
        found.append((min(places, math.prod(counts.get(v, 1) for v in index.variables)), span))
    used = {v for index in indices for v in index.variables}
    return tuple(found), math.prod(counts.get(v, 1) for v in used)


@lru_cache(maxsize=1 << 12)
def _steps(layout: Layout, shape: tuple[int, ...]) -> tuple[int | None, int | None]:
    """The axes along which the next element or texel is the next one in x and in y."""
    middle, lane = layout.order[layout.rows : -1], layout.lane_axis
    outside = len(middle) - layout.inner
    block = () if lane is None else (lane,)
    across = [*middle[:outside], *block, *middle[outside:]]

    def last(axes: list[int] | tuple[int, ...], unit: int) -> int | None:
        return next((a for a in reversed(axes) if largest(shape[a]) > (unit if a == lane else 1)), None)

    return last(across, TEXEL_LANES), last(layout.order[: layout.rows], 1)
