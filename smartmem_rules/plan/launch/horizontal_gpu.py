"""Horizontal fusion on GPUs: independent kernels share a launch where that takes no longer.

The number of the work-group says whose it is (Rammer; HFUSE; Souffle's horizontal step). Work-groups of one launch have
one size, which a contraction takes by another choice of its tile; local memory is as large as the most that one of the
kernels needs. `plan.occupancy` says what that costs.

Kernels are dealt out forwards, each to the first launch behind all that it needs, and backwards, each to the last
launch before all that need it: branches that begin together meet in the one way, those that end together in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.chains import compose
from smartmem_rules.plan.schedule.occupancy import LaunchConfig, fills, fused_time, sequential_time

Reschedule = Callable[[Kernel, LaunchConfig, int], Kernel]
"""A kernel with the sizes of a way to run it, in work-groups of so many work-items."""


@dataclass(frozen=True)
class Candidate:
    """A kernel and the ways in which it may be run; none if it has to have a launch of its own.

    Attributes:
        shares: the one that it has comes first.
    """

    kernel: Kernel
    shares: tuple[LaunchConfig, ...]


@dataclass(frozen=True)
class _Launch:
    """Kernels of one launch with the work-group that is best for them."""

    members: tuple[Candidate, ...]
    threads: int
    chosen: tuple[LaunchConfig, ...]


def side_by_side_in_groups(
    candidates: Sequence[Candidate], rule: Horizontal, device: Device, reschedule: Reschedule
) -> list[Kernel]:
    """Join kernels that do not need each other where one launch takes no longer than several.

    Args:
        candidates: in an order in which each finds what it reads.
        rule: `launches` says how many launches' time a kernel takes at most that fills the device by itself.
        reschedule: sizes a kernel anew for the work-group of its launch.
    """
    graph = KernelGraph([candidate.kernel for candidate in candidates])
    numbers = range(len(candidates))
    forwards = _dealt(candidates, numbers, graph.producers, rule, device)
    backwards = _dealt(candidates, numbers[::-1], graph.consumers, rule, device)[::-1]
    best = min((forwards, backwards), key=len)
    return [_joined(launch, reschedule) for launch in best]


def _dealt(
    candidates: Sequence[Candidate],
    order: Iterable[int],
    before: Callable[[int], Iterable[int]],
    rule: Horizontal,
    device: Device,
) -> list[_Launch]:
    """Each kernel in the first launch that takes it, behind all that have to stand before it.

    Args:
        order: in which the kernels are dealt out.
        before: the kernels that have to stand before one; they come earlier in the order.
    """
    launches: list[_Launch] = []
    launch_of: dict[int, int] = {}
    for number in order:
        candidate = candidates[number]
        after = max((launch_of[n] for n in before(number)), default=-1) + 1
        found = next(
            ((n, one) for n in range(after, len(launches)) if (one := _with(launches[n], candidate, rule, device))),
            None,
        )
        if found is None:
            found = len(launches), _Launch((candidate,), 0, candidate.shares[:1])
            launches.append(found[1])
        launch_of[number], launches[found[0]] = found
    return launches


def _with(launch: _Launch, candidate: Candidate, rule: Horizontal, device: Device) -> _Launch | None:
    """The launch with one kernel more, None where that takes longer than apart."""
    members = (*launch.members, candidate)
    if len(members) > rule.kernels or not all(member.shares for member in members):
        return None
    own = [member.shares[0] for member in members]
    limit = sequential_time(own, device)
    best: tuple[float, _Launch] | None = None
    sizes = {share.threads for member in members for share in member.shares if not share.alone} - {0}
    for threads in sorted(sizes or {rule.group}):
        ways = [[s for s in member.shares if s.threads in (0, threads) and not s.alone] for member in members]
        if not all(ways):
            continue
        chosen = tuple(min(way, key=lambda share: share.time) for way in ways)
        if not all(_is_small(share, threads, rule, device) for share in chosen):
            continue
        time = fused_time(chosen, threads, device)
        if time <= limit and (best is None or time < best[0]):
            best = time, _Launch(members, threads, chosen)
    return None if best is None else best[1]


def _is_small(share: LaunchConfig, threads: int, rule: Horizontal, device: Device) -> bool:
    return not fills(share, threads, device) or share.time <= rule.launches * device.compute.launch


def _joined(launch: _Launch, reschedule: Reschedule) -> Kernel:
    kernels = [member.kernel for member in launch.members]
    if len(kernels) == 1:
        return kernels[0]
    # the longest begins first
    order = sorted(zip(kernels, launch.chosen, strict=True), key=lambda one: -one[1].time)
    steps = [reschedule(kernel, share, launch.threads) for kernel, share in order]
    made = compose("beside", tuple(steps))
    made.group_items = launch.threads
    return made
