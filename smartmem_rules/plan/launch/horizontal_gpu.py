"""Horizontal fusion on GPUs: independent kernels share a launch where that takes no longer.

The number of the work-group says whose it is (Rammer; HFUSE; Souffle's horizontal step). Work-groups of one launch have
one size, which a contraction takes by another choice of its tile; local memory is as large as the most that one of the
kernels needs. `plan.schedule.occupancy` says what that costs.

Kernels are dealt out forwards, each to the first launch behind all that it needs, and backwards, each to the last
launch before all that need it: branches that begin together meet in the one way, those that end together in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.launch import Beside, Launch
from smartmem_rules.plan.launch.operands import operands_of
from smartmem_rules.plan.schedule.occupancy import LaunchConfig, fills, fused_time, sequential_time
from smartmem_rules.records import dataclass

Reschedule = Callable[[Launch, LaunchConfig, int], Launch]
"""A launch with the sizes of a way to run it, in work-groups of so many work-items."""


@dataclass(frozen=True)
class Candidate:
    """A launch and the configurations in which it may share another; none if it has to stay by itself.

    Attributes:
        configs: the one that it has comes first.
    """

    launch: Launch
    configs: tuple[LaunchConfig, ...]


@dataclass(frozen=True)
class _Group:
    """What shares one launch, with the work-group that is best for it."""

    members: tuple[Candidate, ...]
    threads: int
    chosen: tuple[LaunchConfig, ...]


def side_by_side_in_groups(
    candidates: Sequence[Candidate], rule: Horizontal, device: Device, reschedule: Reschedule
) -> list[Launch]:
    """Join launches that do not need each other where one launch takes no longer than several.

    Args:
        candidates: in an order in which each finds what it reads.
        rule: `launches` says how many launches' time a kernel takes at most that fills the device by itself.
        reschedule: sizes a kernel anew for the work-group of its launch.
    """
    graph = KernelGraph([candidate.launch for candidate in candidates])
    numbers = range(len(candidates))
    forwards = _dealt(candidates, numbers, graph.producers, rule, device)
    backwards = _dealt(candidates, numbers[::-1], graph.consumers, rule, device)[::-1]
    best = min((forwards, backwards), key=len)
    return [_joined(group, reschedule) for group in best]


def _dealt(
    candidates: Sequence[Candidate],
    order: Iterable[int],
    before: Callable[[int], Iterable[int]],
    rule: Horizontal,
    device: Device,
) -> list[_Group]:
    """Each launch in the first group that takes it, behind all that have to stand before it.

    Args:
        order: in which the launches are dealt out.
        before: the launches that have to stand before one; they come earlier in the order.
    """
    groups: list[_Group] = []
    group_of: dict[int, int] = {}
    for number in order:
        candidate = candidates[number]
        after = max((group_of[n] for n in before(number)), default=-1) + 1
        found = next(
            ((n, one) for n in range(after, len(groups)) if (one := _with(groups[n], candidate, rule, device))),
            None,
        )
        if found is None:
            found = len(groups), _Group((candidate,), 0, candidate.configs[:1])
            groups.append(found[1])
        group_of[number], groups[found[0]] = found
    return groups


def _with(group: _Group, candidate: Candidate, rule: Horizontal, device: Device) -> _Group | None:
    """The group with one launch more, None where that takes longer than apart."""
    members = (*group.members, candidate)
    if len(members) > rule.kernels or not all(member.configs for member in members):
        return None
    if len(frozenset().union(*(operands_of(member.launch) for member in members))) > device.compute.parameters:
        return None
    own = [member.configs[0] for member in members]
    limit = sequential_time(own, device)
    best: tuple[float, _Group] | None = None
    sizes = {config.threads for member in members for config in member.configs if not config.alone} - {0}
    for threads in sorted(sizes or {rule.group}):
        ways = [[c for c in member.configs if c.threads in (0, threads) and not c.alone] for member in members]
        if not all(ways):
            continue
        chosen = tuple(min(way, key=lambda config: config.time) for way in ways)
        if not all(_is_small(config, threads, rule, device) for config in chosen):
            continue
        time = fused_time(chosen, threads, device)
        if time <= limit and (best is None or time < best[0]):
            best = time, _Group(members, threads, chosen)
    return None if best is None else best[1]


def _is_small(config: LaunchConfig, threads: int, rule: Horizontal, device: Device) -> bool:
    return not fills(config, threads, device) or config.time <= rule.launches * device.compute.launch


def _joined(group: _Group, reschedule: Reschedule) -> Launch:
    launches = [member.launch for member in group.members]
    if len(launches) == 1:
        return launches[0]
    # the longest begins first
    order = sorted(zip(launches, group.chosen, strict=True), key=lambda one: -one[1].time)
    steps = tuple(reschedule(launch, config, group.threads) for launch, config in order)
    return Beside(name=steps[0].name, steps=steps, group_items=group.threads)
