"""What a use of a tensor costs in a layout, in nanoseconds of the memory that it goes through.

A buffer moves its elements, an image whole texels, of which an element that is not beside its neighbour in the lanes
takes one of its own.  Texels come out of the shared cache in lines; a line that only one of its texels is read of
costs as much as one that serves its neighbours too.
"""

from __future__ import annotations

from functools import lru_cache

from smartmem_rules.plan.layout_rules import DeviceMemory, LayoutCosts, line_shape
from smartmem_rules.plan.layout_uses import Lead, Use, advancing
from smartmem_rules.plan.memory import item_bytes
from smartmem_rules.plan.model import Layout, Stored
from smartmem_rules.tensor.index import Index, Var, add, div, mod, scale, variable
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.substitution import substitute

LANES = 4


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
        columns, rows = line_shape(self.memory.line, size)
        near = use.near | {v for v in (lead.lane, lead.second) if v is not None}
        across, down = _steps(layout, stored.type.shape)
        neighbours = 1
        if across is not None and advancing(use.indices[across]) in near:
            neighbours *= columns
        if down is not None and advancing(use.indices[down]) in near:
            neighbours *= rows
        texel = size / self.memory.texture + self.memory.line / (neighbours * self.memory.shared)
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
