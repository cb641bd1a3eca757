"""What the work-items of a launch are: how many, which rows they own, and what they wait for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.records import dataclass

if TYPE_CHECKING:  # a plan from a file holds no expressions
    from smartmem_rules.tensor.atoms import Var


@dataclass(frozen=True)
class Grid:
    """Launch geometry.

    Attributes:
        global_size: work-items along each dimension; expressions of open extents.
        local_size: work-items of a work-group, None where the driver may choose.
    """

    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None

    @staticmethod
    def of(items: int, group: int) -> Grid:
        """So many work-items in groups of one size."""
        return Grid((items,), (group,))

    @staticmethod
    def covering(items: int, group: int) -> Grid:
        """Whole groups for at least so many work-items."""
        return Grid((-(-items // group) * group,), (group,))

    @property
    def items(self) -> int:
        """All work-items."""
        return math.prod(self.global_size)


@dataclass(frozen=True, kw_only=True)
class BlockRows:
    """The rows that the work-items of a chain own.

    Attributes:
        axes: the loop variables that number the rows.
        m: rows of a batch.
        block_rows: of a work-item.
        candidates: other numbers of rows that the chain may have, the best first.
        kept: elements of a row of the tensors that lie in scratch memory between the kernels, by tensor.
    """

    axes: tuple[Var, ...]
    m: int
    block_rows: int
    candidates: tuple[int, ...] = ()
    kept: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """What the work-items of a step wait for before they begin.

    Attributes:
        step: which earlier step.
        lag: None: for all of its work-items; else work-item i waits until i + lag of them are done, of a step whose
            work-items are computed in turn.
    """

    step: int
    lag: int | None = None


@dataclass(frozen=True, kw_only=True)
class TaskGraph:
    """How the work-items of an ordered launch follow each other.

    Attributes:
        state: the tensor of the counters.
        waits: of each step.
        patience: how often a work-group looks whether what it waits for is done, before it leaves the rest to others.
        in_turn: the steps whose work-items need the one before, computed by one work-group as far as it gets.
    """

    state: str
    waits: tuple[tuple[Wait, ...], ...]
    patience: int
    in_turn: tuple[int, ...] = ()

    def awaited(self, step: int) -> set[int]:
        """The steps that are done when a step begins, or far enough for it."""
        found: set[int] = set()
        stack = [step]
        while stack:
            for wait in self.waits[stack.pop()]:
                if wait.step not in found:
                    found.add(wait.step)
                    stack.append(wait.step)
        return found


@dataclass(frozen=True)
class Note:
    """Where a launch notes whether its work-groups waited in vain: so many ints behind the end of a tensor."""

    tensor: str
    place: int


@dataclass(frozen=True)
class Part:
    """Where a tensor lies that is a part of another one: bytes from its beginning."""

    container: str
    offset: int
