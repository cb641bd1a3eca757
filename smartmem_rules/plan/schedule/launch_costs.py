"""The time of launches whose work-items own rows: one kernel alone, or several in blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.schedule.contraction.sizing import UNBOUNDED, Filter, Resources, rows_as_at_peak
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class LaunchCosts:
    """Times of launches on a device.

    Attributes:
        schedule: of the panel template, whose best register tile reaches the device's peak.
    """

    schedule: Panel
    device: Device
    _rows: dict[tuple[int, int], float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def together(self, sizes: Sequence[Resources], block: int, whole: bool) -> float:
        """Nanoseconds of a launch of kernels one after the other.

        Args:
            block: rows of a work-item.
            whole: a work-item owns all rows of a batch instead.
        """
        return Steps(self, whole, sizes).time(block)

    def demand(self, sizes: Resources, block: int, items: int) -> float:
        """Nanoseconds of one of the work-items with so many rows, filtered where that is how such blocks run."""
        filtered = next((found for found in sizes.filters if block in found.blocks), None)
        if filtered is not None:
            return self._filtered(filtered, block, items)
        rows = self._as_at_peak(block, sizes.row_bytes)
        operations = sizes.operations / (sizes.batch_count * sizes.m_count) * rows
        return self.device.compute.unit_time(operations) + sizes.right_bytes / self.device.memory.of_unit

    def _as_at_peak(self, block: int, row_bytes: int) -> float:
        """How many rows of the best register block, with which the peak was measured, take as long."""
        found = self._rows.get((block, row_bytes))
        if found is None:
            found = self._rows[block, row_bytes] = rows_as_at_peak(self.schedule, block, row_bytes)
        return found

    def alone(self, sizes: Resources) -> float:
        """Nanoseconds of a kernel by itself, its work balanced over the device; filtered where that is how it runs."""
        filtered = (
            self.device.compute.launch + self.rounds(items) * self._filtered(found, block, items)
            for found in sizes.filters
            for block in found.blocks
            if (items := sizes.batch_count * -(-sizes.m_count // block))
        )
        return min(filtered, default=self._directly(sizes))

    def _filtered(self, found: Filter, block: int, items: int) -> float:
        return (
            self.device.compute.unit_time(found.blocks[block] / items) + found.right_bytes / self.device.memory.of_unit
        )

    def _directly(self, sizes: Resources) -> float:
        block = max(1, min(sizes.most, sizes.m_count, self.schedule.smallest_block))
        blocks = -(-sizes.m_count // block) * sizes.batch_count
        items = max(blocks, self.schedule.items)
        work = self.device.compute.unit_time(sizes.operations / items)
        weights = blocks / items * sizes.right_bytes / self.device.memory.of_unit
        return self.device.compute.launch + self.rounds(items) * (work + weights)

    def rounds(self, items: int) -> float:
        """How often the device takes new work-items, and how long it waits for the last of them."""
        return -(-items // self.device.compute.units) + self.device.compute.late_unit


@dataclass(kw_only=True)
class _Block:
    """What a number of rows demands of a work-item for the first `count` steps.

    Attributes:
        items: work-items with so many rows.
        taken: whether the steps can all run with so many rows; the time is only summed where they can.
        time: nanoseconds of a work-item.
    """

    items: int
    count: int = 0
    taken: bool = True
    time: float = 0.0


class Steps:
    """Kernels that run one after the other in one launch, with sums that go on when another one joins.

    Without these sums the planning of a chain of n kernels takes time in the order of n squared.

    Attributes:
        whole: whether a work-item owns all rows of a batch.
        right_bytes: of the right factors of all steps.
        most: rows for which a work-item has scratch memory in every step.
        whole_fits: whether that are all rows of a batch.
        filtered: the blocks of rows for which a step can be filtered.
    """

    def __init__(self, costs: LaunchCosts, whole: bool, sizes: Sequence[Resources] = ()) -> None:
        self.costs = costs
        self.whole = whole
        self.sizes: list[Resources] = []
        self.right_bytes = 0
        self.most = UNBOUNDED
        self.whole_fits = True
        self.filtered: set[int] = set()
        self._work = 0.0
        self._blocks: dict[int, _Block] = {}
        for one in sizes:
            self.add(one)

    def add(self, sizes: Resources) -> None:
        """Let another kernel run after the others."""
        self.sizes.append(sizes)
        self.right_bytes += sizes.right_bytes
        self.most = min(self.most, sizes.most)
        self.whole_fits &= sizes.most >= sizes.m_count
        self.filtered.update(b for f in sizes.filters for b in f.blocks)
        if self.whole:
            self._work += sizes.operations / sizes.batch_count

    def takes(self, block: int) -> bool:
        """Whether every step can run in blocks of so many rows."""
        return self._block(block).taken

    def time(self, block: int) -> float:
        """Nanoseconds of the launch with so many rows a work-item; they count for nothing where it owns a batch."""
        if len(self.sizes) == 1:
            return self.costs.alone(self.sizes[0])
        return self._launch(block, None)

    def time_with(self, another: Resources, block: int) -> float:
        """Nanoseconds of the launch with another kernel after the steps."""
        return self._launch(block, another)

    def _launch(self, block: int, another: Resources | None) -> float:
        costs, compute = self.costs, self.costs.device.compute
        if self.whole:
            work, right = self._work, self.right_bytes
            if another is not None:
                work, right = work + another.operations / another.batch_count, right + another.right_bytes
            item = compute.unit_time(work) + right / costs.device.memory.of_unit
            return compute.launch + costs.rounds(self.sizes[0].batch_count) * item
        here = self._block(block)
        time = here.time if another is None else here.time + costs.demand(another, block, here.items)
        return compute.launch + costs.rounds(here.items) * time

    def _block(self, block: int) -> _Block:
        """What so many rows demand for all steps so far."""
        here = self._blocks.get(block)
        if here is None:
            first = self.sizes[0]
            items = first.batch_count * -(-first.m_count // block)
            here = self._blocks[block] = _Block(items=items)
        for sizes in self.sizes[here.count :]:
            here.taken = here.taken and sizes.takes(block)
            if here.taken:
                here.time += self.costs.demand(sizes, block, here.items)
        here.count = len(self.sizes)
        return here
