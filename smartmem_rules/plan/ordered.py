"""Kernels that need each other in one launch, on devices whose work-groups, once begun, keep their unit to the end.

A work-group takes one work-item after the other from a counter, in an order in which each stands behind all that it needs,
waits until that is done, computes, and counts itself (codegen/ordered.cl). What it waits for was taken before by a
work-group that runs, so that none waits for ever, however many of them run at once.

Launches that follow each other are joined when all else is decided: which memory a tensor has, also which one had it before.
A kernel waits for those that write what it reads or writes, or read what it writes, by the places in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from smartmem_rules.plan.chains import compose
from smartmem_rules.plan.memory import stored_bytes
from smartmem_rules.plan.model import Kernel, Order, Place, Source, Stored, Wait, row_major
from smartmem_rules.plan.policy import FusionRule
from smartmem_rules.plan.sizing import Machine
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import is_symbolic

LINE = 16
"""Elements of int32 from one counter to the next: each lies in a line of the cache of its own."""


def in_order(
    name: str, steps: tuple[Kernel, ...], waits: tuple[tuple[Wait, ...], ...], in_turn: tuple[int, ...] = ()
) -> Kernel:
    """A launch of kernels of which some wait for others (see `Order`)."""
    found = compose("ordered", steps)
    found.name = name
    found.order = Order(f"{name}@order", waits, in_turn)
    found.note_borders()
    return found


def counters(kernels: Iterable[Kernel]) -> dict[str, Stored]:
    """The memory of the counters of those kernels that are ordered launches: zeros, as each run leaves them."""
    return {order.state: _counters(order) for kernel in kernels if (order := kernel.order) is not None}


def _counters(order: Order) -> Stored:
    zeros = np.zeros(LINE * (1 + len(order.waits)), np.int32)
    return Stored(order.state, TensorType("int32", zeros.shape), row_major(1), "constant", "int32", zeros)


# --- launches that follow each other ---


@dataclass(frozen=True)
class _Launch:
    """A kernel and its times on the device.

    Attributes:
        known: whether the number of its work-items is known before it runs.
        time: nanoseconds on one unit.
        idle: nanoseconds for which units wait for its last work-items.
    """

    kernel: Kernel
    known: bool
    time: float = 0.0
    idle: float = 0.0


@dataclass
class _Group:
    """Launches that become one."""

    members: list[_Launch] = field(default_factory=list)
    waits: list[tuple[Wait, ...]] = field(default_factory=list)


def join_launches(
    kernels: Sequence[Kernel],
    sources: Sequence[Source],
    memory: tuple[Mapping[str, Stored], Mapping[str, Place]],
    rule: FusionRule,
    machine: Machine,
) -> list[Kernel]:
    """The launches, those of them joined that do not have to wait longer for each other than the rule admits.

    Args:
        sources: of the kernels.
        memory: all tensors, and the places of intermediates.
    """
    touched = _Touched(*memory)
    groups: list[_Group] = []
    for kernel, source in zip(kernels, sources, strict=True):
        launch = _launch(kernel, source, machine)
        waits = _waits(groups[-1], kernel, touched) if groups else ()
        if groups and _joins(groups[-1], launch, waits, rule, machine):
            groups[-1].members.append(launch)
            groups[-1].waits.append(waits)
        else:
            groups.append(_Group([launch], [()]))
    return [_joined(group) for group in groups]


def _launch(kernel: Kernel, source: Source, machine: Machine) -> _Launch:
    size = source.global_size[0]
    if is_symbolic(size) or len(source.global_size) != 1 or size == 0 or kernel.order is not None:
        return _Launch(kernel, False)
    time = max(kernel.operations * machine.units / machine.peak, kernel.bytes_moved / machine.bandwidth)
    # units without a work-item in the last round, and those that wait for a late one
    places = -size % machine.units + machine.late_unit
    return _Launch(kernel, True, time, time / size * places)


def _waits(group: _Group, kernel: Kernel, touched: _Touched) -> tuple[Wait, ...]:
    """The members that a kernel has to wait for; not those that these have waited for themselves."""
    found: list[int] = []
    behind: set[int] = set()
    for number in range(len(group.members) - 1, -1, -1):
        if number not in behind and touched.meet(group.members[number].kernel, kernel):
            found.append(number)
            behind |= _before(group, number)
    return tuple(Wait(number) for number in sorted(found))


def _before(group: _Group, number: int) -> set[int]:
    """All members that are done when this one is."""
    found: set[int] = set()
    for wait in group.waits[number]:
        found |= {wait.step, *_before(group, wait.step)}
    return found


def _joins(group: _Group, launch: _Launch, waits: tuple[Wait, ...], rule: FusionRule, machine: Machine) -> bool:
    """Whether what units wait in vain, where they would sleep between launches, is little."""
    if not (launch.known and group.members[0].known):
        return False
    needed = [group.members[wait.step] for wait in waits]
    return all(one.idle <= rule.waits * machine.launch + one.time * rule.tolerance / 100 for one in needed)


def _joined(group: _Group) -> Kernel:
    steps = tuple(member.kernel for member in group.members)
    if len(steps) == 1:
        return steps[0]
    found = in_order(steps[0].name, steps, tuple(group.waits))
    found.bytes_moved = sum(step.bytes_moved for step in steps)
    for step in steps:
        found.in_place |= step.in_place
    return found


@dataclass(frozen=True)
class _Touched:
    """Which memory kernels read and write."""

    tensors: Mapping[str, Stored]
    placement: Mapping[str, Place]

    def meet(self, earlier: Kernel, later: Kernel) -> bool:
        """Whether a kernel needs another one to be over: one of them writes where the other reads or writes."""
        return self._overlap(earlier.writes, (*later.reads, *later.writes)) or self._overlap(
            earlier.reads, later.writes
        )

    def _overlap(self, those: Iterable[str], others: Iterable[str]) -> bool:
        mine = [self._range(name) for name in those]
        return any(a == b and x < d and c < y for a, x, y in mine for b, c, d in map(self._range, others))

    def _range(self, name: str) -> tuple[object, int, int]:
        """The piece of memory of a tensor, and its first and last byte there."""
        size = stored_bytes(self.tensors[name])
        place = self.placement.get(name)
        return (name, 0, size) if place is None else (place.slot, place.offset, place.offset + size)
