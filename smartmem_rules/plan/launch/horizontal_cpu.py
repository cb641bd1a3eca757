"""Horizontal fusion on CPUs: independent kernels that each leave the device partly idle share a launch.

Rammer and HFUSE run operators of different kinds together; Souffle calls it horizontal fusion. The kernels need not be
alike: the number of a work-item says which of them it belongs to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.launch import Beside, Launch
from smartmem_rules.plan.launch.operands import number_together, operands_of
from smartmem_rules.records import dataclass


def side_by_side(given: Sequence[Launch], rule: Horizontal, device: Device) -> list[Launch]:
    """Join small independent launches; `rule.launches` says how many launches' time a small one takes at most.

    A launch goes to the earliest group of small ones on which it does not depend: what it reads has just been made.
    """
    most = min(rule.operands, device.compute.parameters)
    groups: list[_Group] = []
    graph = KernelGraph(given)
    group_of: list[int] = []
    open_ones: list[int] = []
    """The groups of small launches that have room, in their order."""
    for number, launch in enumerate(given):
        small, own = _is_small(launch, rule, device), operands_of(launch)
        # groups stand in an order of execution: the ones behind all that the launch reads do not need it
        after = max((group_of[n] for n in graph.producers(number)), default=-1) + 1
        at = bisect_left(open_ones, after) if small else len(open_ones)
        while at < len(open_ones) and number_together(groups[open_ones[at]].operands, own) > most:
            del open_ones[at]
        if at == len(open_ones):
            if small:
                open_ones.append(len(groups))
            groups.append(_Group())
            place = len(groups) - 1
        else:
            place = open_ones[at]
        groups[place].launches.append(launch)
        groups[place].operands |= own
        group_of.append(place)
    return [_joined(group.launches) for group in groups]


@dataclass
class _Group:
    """Launches that become one, and the tensors that they take."""

    launches: list[Launch] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)


def _joined(launches: Sequence[Launch]) -> Launch:
    return launches[0] if len(launches) == 1 else Beside(name=launches[0].name, steps=tuple(launches))


def _is_small(launch: Launch, rule: Horizontal, device: Device) -> bool:
    """Whether one unit of the device computes the launch in the time of a few launches."""
    if any(kernel.form == "scan" for kernel in launch.kernels):
        return False
    return device.compute.unit_time(launch.operations) <= rule.launches * device.compute.launch
