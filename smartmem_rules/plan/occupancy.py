"""What a kernel takes of a GPU: work-groups, local memory and time, alone and beside others in one launch.

A multiprocessor holds so many work-groups at a time as its work-items and its local memory allow. A launch of several
kernels asks the most of them for each of its work-groups, whatever a kernel needs itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Occupancy:
    """A GPU's multiprocessors.

    Attributes:
        units: how many.
        items: work-items that one keeps busy.
        memory: bytes of local memory that its work-groups share.
        launch: nanoseconds of an enqueue.
    """

    units: int
    items: int
    memory: int
    launch: float

    @staticmethod
    def of(entries: Mapping[str, tuple[Any, ...]]) -> Occupancy | None:
        """What a device profile states, None where it does not say how many work-items a multiprocessor keeps busy."""
        one = {key: values[0] for key, values in entries.items()}
        units = one.get("texture_units", one.get("units"))
        items = one.get("resident_items", one.get("resident_waves", 0) * one.get("wave", 0))
        if units is None or not items or "unit_memory" not in one:
            return None
        return Occupancy(int(units), int(items), int(one["unit_memory"]), float(one["launch_us"]) * 1000)

    def resident(self, threads: int, local: int, busy: int) -> int:
        """Work-groups that a multiprocessor holds."""
        return max(1, min(min(self.items, busy) // threads, self.memory // max(1, local)))


@dataclass(frozen=True)
class Share:
    """One way to run a kernel.

    Attributes:
        threads: work-items of its work-groups, 0 if any number does.
        items: all its work-items.
        local: bytes of local memory of a work-group.
        time: nanoseconds without the launch.
        busy: work-items of it that keep a multiprocessor busy.
        choice: the sizes that this takes, None for those that the kernel has.
        alone: whether this takes a launch of its own.
    """

    threads: int
    items: int
    local: int
    time: float
    busy: int
    choice: Mapping[str, int] | None = None
    alone: bool = False

    def groups(self, threads: int) -> int:
        """Its work-groups of so many work-items."""
        return -(-self.items // threads)


def fills(share: Share, threads: int, device: Occupancy) -> bool:
    """Whether a kernel alone has a work-group for each place of the device."""
    return share.groups(threads) >= device.units * device.resident(threads, share.local, share.busy)


def beside(shares: Sequence[Share], threads: int, device: Occupancy) -> float:
    """Nanoseconds of a launch of kernels side by side: the longest round of work-groups, or all rounds together."""
    local = max(share.local for share in shares)
    resident = min(device.resident(threads, local, share.busy) for share in shares)
    longest = total = 0.0
    for share in shares:
        alone = device.units * device.resident(threads, share.local, share.busy)
        groups = share.groups(threads)
        each = share.time / math.ceil(groups / alone)
        longest = max(longest, each)
        total += groups * each / (device.units * resident)
    return device.launch + max(longest, total)


def apart(shares: Sequence[Share], device: Occupancy) -> float:
    """Nanoseconds of one launch after the other."""
    return sum(device.launch + share.time for share in shares)
