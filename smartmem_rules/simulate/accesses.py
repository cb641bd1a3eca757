"""What a trace is made of: the work-items and parameters that it begins with, and the accesses that it gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.simulate.values import Space

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Parameter:
    """What a kernel's parameter stands for.

    Attributes:
        item_bytes: of one element; of one channel of a texel.
        constant: whether no kernel writes it, so that a compiler may read an element once instead of twice.
        size: width and height of an image, None for buffers.
        bytes: of all of it.
        values: of a constant of integers, flat as in memory.
    """

    name: str
    item_bytes: int
    constant: bool
    size: tuple[int, int] | None = None
    bytes: int = 0
    values: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Items:
    """The work-items of a trace, by dimension of the launch: their numbers, their groups, their places in them."""

    ids: tuple[Array, ...]
    groups: tuple[Array, ...]
    locals: tuple[Array, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    active: Array


@dataclass(frozen=True)
class Slice:
    """The part of a loop that a trace follows: `count` of its steps from `start` on."""

    start: int
    count: int


@dataclass
class Loop:
    """A loop as an axis: how many of its steps the trace holds, and how many there are."""

    node: int
    count: int
    steps: int


@dataclass
class Access:
    """One place in the text that reads or writes memory.

    Attributes:
        space: what is accessed.
        write: else a read.
        place: texel coordinates (x, y) of an image, (offset,) of a buffer in elements; work-items by loops.
        width: elements at once.
        mask: which work-items do it, at which steps.
        time: when, over the loops; the same for all work-items.
        loops: the axes behind the first.
    """

    space: Space
    write: bool
    place: tuple[Array, ...]
    width: int
    mask: Array
    time: Array
    loops: tuple[Loop, ...]

    @property
    def weight(self) -> float:
        """How many accesses of the launch one access of the trace stands for, as far as loops were cut."""
        return float(np.prod([loop.steps / loop.count for loop in self.loops])) if self.loops else 1.0
