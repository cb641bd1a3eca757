"""Loops of the templates without a contraction: the vector axis, the other axes, and the work of one work-item.

Emission writes these loops and the grid counts them, so both read them here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Literal

from smartmem_rules.plan.kernel.addressing import is_contiguous
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.layout.accesses import store_lane
from smartmem_rules.plan.schedule.records import TeamSchedule
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Reduce, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import variable
from smartmem_rules.tensor.ranges import several, surely_below

RowForm = Literal["elements", "texels", "teams"]


def writes_images(kernel: Kernel, tensors: Mapping[str, Stored]) -> bool:
    """Whether a kernel stores texels."""
    return any(tensors[s.tensor].layout.memory == "image" for s in kernel.stores)


@dataclass(frozen=True, kw_only=True)
class ElementLoops:
    """The loops of an elementwise kernel.

    Attributes:
        lanes: the axis along which vectors lie, None where each element stands alone.
        outer: the other axes, the slowest first; the last one counts blocks of `neighbours` elements.
        neighbours: what a work-item computes along the last of the other axes, one after the other.
        vectors: along `lanes`.
        inside: how many elements of the other axes lie between two vectors of an image.
    """

    lanes: Var | None
    outer: tuple[Var, ...]
    neighbours: Var | None
    vectors: int
    inside: int

    @property
    def outer_count(self) -> int:
        """Vectors' worth of the other axes."""
        return math.prod(v.extent for v in self.outer)

    @staticmethod
    def of(kernel: Kernel, tensors: Mapping[str, Stored], width: int, most: int = 1) -> ElementLoops:
        """The loops of a kernel.

        Args:
            width: elements of a vector in buffers.
            most: neighbours along the last of the other axes that a work-item may compute.
        """
        lanes = lane_axis(kernel, tensors)
        outer = _outer_axes(kernel, tensors, lanes)
        neighbours = _neighbours(outer, most)
        if neighbours is not None:
            outer = (*outer[:-1], Var(outer[-1].name, outer[-1].extent // neighbours.extent))
        width = TEXEL_LANES if writes_images(kernel, tensors) else width
        vectors = 1 if lanes is None else -(-lanes.extent // width)
        return ElementLoops(
            lanes=lanes, outer=outer, neighbours=neighbours, vectors=vectors, inside=_inside(kernel, tensors, outer)
        )


def lane_axis(kernel: Kernel, tensors: Mapping[str, Stored]) -> Var | None:
    """The kernel axis along which texels are filled, else the one along which the first output is contiguous."""
    store = min(kernel.stores, key=lambda s: tensors[s.tensor].layout.lane_axis is None)
    return store_lane(kernel, store, tensors[store.tensor].layout)


def _outer_axes(kernel: Kernel, tensors: Mapping[str, Stored], axis: Var | None) -> tuple[Var, ...]:
    """The other axes, in the order in which the first output lies in memory."""
    store = kernel.stores[0]
    ordered: dict[Var, None] = {}
    for place in tensors[store.tensor].layout.order:
        if place >= 0:
            for var in sorted(store.indices[place].variables & set(kernel.axes), key=kernel.axes.index):
                ordered.setdefault(var)
    ordered.update(dict.fromkeys(v for v in kernel.axes if several(v.extent)))
    return tuple(v for v in ordered if v is not axis and v != axis)


def _neighbours(outer: tuple[Var, ...], most: int) -> Var | None:
    """How many neighbours along the fastest other axis a work-item computes: so many as divide its extent."""
    if not outer or most == 1 or is_symbolic(outer[-1].extent):
        return None
    number = next(n for n in range(min(most, outer[-1].extent), 0, -1) if outer[-1].extent % n == 0)
    return Var("place", number) if number > 1 else None


def _inside(kernel: Kernel, tensors: Mapping[str, Stored], outer: tuple[Var, ...]) -> int:
    """How many places along the other axes lie between two vectors of an image whose lanes are not the fastest in x."""
    store = min(kernel.stores, key=lambda s: tensors[s.tensor].layout.lane_axis is None)
    layout = tensors[store.tensor].layout
    axes = layout.order[len(layout.order) - 1 - layout.inner : -1] if layout.inner else ()
    inner = {v for axis in axes for v in store.indices[axis].variables}
    own = list(itertools.takewhile(inner.__contains__, reversed(outer)))
    return math.prod(v.extent for v in own)


# --- rows ---


def row_form(kernel: Kernel, tensors: Mapping[str, Stored], width: int, block_rows: int | None) -> RowForm:
    """How a row reduction is computed.

    `elements`: neighbouring rows lie side by side, so one vector holds a statistic of several; `texels`: scalar results
    of four neighbouring rows make one texel; `teams`: work-items take whole rows, alone or together.

    Args:
        width: elements of a vector in buffers.
        block_rows: rows of a work-item, where the kernel's launch decides that (a chain).
    """
    whole = isinstance(kernel.schedule, TeamSchedule) and kernel.schedule.whole_rows
    if block_rows is None and not whole and lanes_across_rows(kernel, tensors, width):
        return "elements"
    return "teams" if packed_rows(kernel, tensors) is None else "texels"


def lanes_across_rows(kernel: Kernel, tensors: Mapping[str, Stored], width: int) -> bool:
    """Whether neighbouring rows lie side by side, so that a vector can hold a statistic of several."""
    if any(s.local for s in kernel.stores) or any(s.axes for s in kernel.stages):
        return False
    axis = lane_axis(kernel, tensors)
    if axis is None or surely_below(axis.extent, width):
        return False
    images = any(tensors[t].layout.memory == "image" for t in kernel.writes)
    lanes = TEXEL_LANES if images else width
    reading = [s.body for s in kernel.stages if any(isinstance(n, Reduce) for n in walk(s.body))]
    on_chip = {s.name for s in kernel.stages}
    return bool(reading) and all(is_contiguous(b, axis, lanes, tensors.__getitem__, on_chip) for b in reading)


def packed_rows(kernel: Kernel, tensors: Mapping[str, Stored]) -> Var | None:
    """The row axis that fills the lanes of an image output: four rows then belong to one work-item."""
    for store in kernel.stores:
        lane = tensors[store.tensor].layout.lane_axis
        if lane is not None:
            index = store.indices[lane]
            for var in kernel.axes:
                if index == variable(var) and several(var.extent):
                    return var
    return None


def row_count(kernel: Kernel) -> int:
    """Rows of a reduction kernel."""
    return math.prod(v.extent for v in kernel.axes if several(v.extent))
