"""Occupancy of a GPU: work-groups, local memory and time of a kernel alone and in a shared launch.

A multiprocessor holds so many work-groups at a time as its work-items and its local memory allow. A launch of several
kernels asks the most of them for each of its work-groups, whatever a kernel needs itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """One way to run a kernel.

    Attributes:
        threads: work-items of its work-groups, 0 if any number does.
        items: all its work-items.
        local: bytes of local memory of a work-group.
        time: nanoseconds without the launch.
        busy: work-items of it that keep a multiprocessor busy.
        choice: the sizes that this takes, None for those that the kernel has.
        alone: whether this takes a launch of its own.
        team: work-items of each row; 0 for those that the kernel has, or where none share one.
        order_factor: how many times as long this takes in a launch of kernels that need each other; 0: as the device
            says.
    """

    threads: int
    items: int
    local: int
    time: float
    busy: int
    choice: Mapping[str, int] | None = None
    alone: bool = False
    team: int = 0
    order_factor: float = 0.0

    def groups(self, threads: int) -> int:
        """Its work-groups of so many work-items."""
        return -(-self.items // threads)


def fills(share: LaunchConfig, threads: int, device: Device) -> bool:
    """Whether a kernel alone has a work-group for each place of the device."""
    return share.groups(threads) >= device.group_units * device.resident_groups(threads, share.local, share.busy)


def fused_time(shares: Sequence[LaunchConfig], threads: int, device: Device) -> float:
    """Nanoseconds of a launch of kernels side by side: the longest round of work-groups, or all rounds together."""
    local = max(share.local for share in shares)
    resident = min(device.resident_groups(threads, local, share.busy) for share in shares)
    longest = total = 0.0
    for share in shares:
        alone = device.group_units * device.resident_groups(threads, share.local, share.busy)
        groups = share.groups(threads)
        each = share.time / max(1, math.ceil(groups / alone))  # a tensor without elements takes no work-group
        longest = max(longest, each)
        total += groups * each / (device.group_units * resident)
    return device.compute.launch + max(longest, total)


def sequential_time(shares: Sequence[LaunchConfig], device: Device) -> float:
    """Nanoseconds of one launch after the other."""
    return sum(device.compute.launch + share.time for share in shares)
