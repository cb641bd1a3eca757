"""The time of launches whose work-items own rows: one kernel alone, or several in blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smartmem_rules.plan.sizing import ContractionSchedule, Machine, Sizes, rows_as_at_peak


@dataclass(frozen=True)
class LaunchCosts:
    """Times of launches on a machine.

    Attributes:
        schedule: of the panel template, whose best register block reaches the machine's peak.
    """

    schedule: ContractionSchedule
    machine: Machine

    def together(self, sizes: Sequence[Sizes], block: int, whole: bool) -> float:
        """Nanoseconds of a launch of kernels one after the other.

        Args:
            block: rows of a work-item.
            whole: a work-item owns all rows of a batch instead.
        """
        if len(sizes) == 1:
            return self.alone(sizes[0])
        if whole:
            items = sizes[0].batch_count
            work = sum(s.operations / s.batch_count for s in sizes)
        else:
            m = sizes[0].m_count
            items = sizes[0].batch_count * -(-m // block)
            # the peak was measured with the best register block
            rows = rows_as_at_peak(self.schedule, block)
            demands = [self._demand(s, block, rows, items) for s in sizes]
            return self.machine.launch + self._rounds(items) * sum(demands)
        weights = sum(s.right_bytes for s in sizes) / self.machine.bandwidth
        return self.machine.launch + self._rounds(items) * (work * self.machine.units / self.machine.peak + weights)

    def _demand(self, sizes: Sizes, block: int, rows: float, items: int) -> float:
        """Nanoseconds of one of the work-items with so many rows, by the cheapest way there is."""
        direct = (sizes.operations / (sizes.batch_count * sizes.m_count) * rows, sizes.right_bytes)
        ways = [direct] if block <= sizes.most else []
        ways += [(f.blocks[block] / items, f.right_bytes) for f in sizes.filters if block in f.blocks]
        units, peak, bandwidth = self.machine.units, self.machine.peak, self.machine.bandwidth
        return min(operations * units / peak + right / bandwidth for operations, right in ways)

    def alone(self, sizes: Sizes) -> float:
        """Nanoseconds of a kernel by itself, its work balanced over the device."""
        filtered = (
            self.machine.launch + self._rounds(items) * self._demand(sizes, block, block, items)
            for block in {b for f in sizes.filters for b in f.blocks}
            if (items := sizes.batch_count * -(-sizes.m_count // block))
        )
        return min([self._directly(sizes), *filtered])

    def _directly(self, sizes: Sizes) -> float:
        block = max(1, min(sizes.most, sizes.m_count, self.schedule.smallest_block))
        blocks = -(-sizes.m_count // block) * sizes.batch_count
        items = max(blocks, self.schedule.items)
        work = sizes.operations / items * self.machine.units / self.machine.peak
        weights = blocks / items * sizes.right_bytes / self.machine.bandwidth
        return self.machine.launch + self._rounds(items) * (work + weights)

    def _rounds(self, items: int) -> float:
        """How often the device takes new work-items, and how long it waits for the last of them."""
        return -(-items // self.machine.units) + self.machine.late_unit
