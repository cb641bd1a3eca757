"""Horizontal fusion on CPUs: independent kernels that each leave the device partly idle share a launch.

Rammer and HFUSE run operators of different kinds together; Souffle calls it horizontal fusion. The kernels need not be
alike: the number of a work-item says which of them it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.chains import compose


def side_by_side(kernels: Sequence[Kernel], rule: Horizontal, device: Device) -> list[Kernel]:
    """Join small independent kernels; `rule.launches` says how many launches' time a small one takes at most.

    A kernel goes to the earliest launch of small kernels on which it does not depend: what it reads has just been made.
    """
    launches: list[list[Kernel]] = []
    graph = KernelGraph(kernels)
    launch_of: list[int] = []
    for number, kernel in enumerate(kernels):
        small = _is_small(kernel, rule, device)
        # launches stand in an order of execution: the ones behind all that the kernel reads do not need it
        after = max((launch_of[n] for n in graph.producers(number)), default=-1) + 1
        open_ones = range(after, len(launches)) if small else ()
        place = next((n for n in open_ones if all(_is_small(k, rule, device) for k in launches[n])), len(launches))
        if place == len(launches):
            launches.append([])
        launches[place].append(kernel)
        launch_of.append(place)
    return [one[0] if len(one) == 1 else compose("beside", tuple(one)) for one in launches]


def _is_small(kernel: Kernel, rule: Horizontal, device: Device) -> bool:
    """Whether one unit of the device computes the kernel in the time of a few launches."""
    if any(leaf.form == "scan" for leaf in kernel.leaves):
        return False
    return device.compute.unit_time(kernel.operations) <= rule.launches * device.compute.launch
