"""Horizontal fusion on CPUs: independent kernels that each leave the device partly idle share a launch.

Rammer and HFUSE run operators of different kinds together; Souffle calls it horizontal fusion. The kernels need not be
alike: the number of a work-item says which of them it belongs to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.launch import Beside, Launch


def side_by_side(given: Sequence[Launch], rule: Horizontal, device: Device) -> list[Launch]:
    """Join small independent launches; `rule.launches` says how many launches' time a small one takes at most.

    A launch goes to the earliest group of small ones on which it does not depend: what it reads has just been made.
    """
    groups: list[list[Launch]] = []
    graph = KernelGraph(given)
    group_of: list[int] = []
    open_ones: list[int] = []
    """The groups of small launches that have room, in their order."""
    operands: list[set[str]] = []
    for number, launch in enumerate(given):
        small = _is_small(launch, rule, device)
        # groups stand in an order of execution: the ones behind all that the launch reads do not need it
        after = max((group_of[n] for n in graph.producers(number)), default=-1) + 1
        at, own = bisect_left(open_ones, after), {*launch.reads, *launch.writes}
        while (
            small
            and at < len(open_ones)
            and len(operands[open_ones[at]]) + len(own - operands[open_ones[at]]) > rule.operands
        ):
            del open_ones[at]
        place = open_ones[at] if small and at < len(open_ones) else len(groups)
        if place == len(groups):
            groups.append([])
            operands.append(set())
            if small:
                open_ones.append(place)
        groups[place].append(launch)
        operands[place] |= own
        group_of.append(place)
    return [one[0] if len(one) == 1 else Beside(name=one[0].name, steps=tuple(one)) for one in groups]


def _united(many: set[str], few: set[str]) -> int:
    """The number of different names, in time of the few."""
    return len(many) + len(few - many)


def _is_small(launch: Launch, rule: Horizontal, device: Device) -> bool:
    """Whether one unit of the device computes the launch in the time of a few launches."""
    if any(kernel.form == "scan" for kernel in launch.kernels):
        return False
    return device.compute.unit_time(launch.operations) <= rule.launches * device.compute.launch
