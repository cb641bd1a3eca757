"""Kernels that need each other in one launch, on devices whose work-groups, once begun, run to their end by themselves.

Work-groups go through the kernels in their order and take work-items from counters, each when all that it needs is done
(codegen/ordered.cl). None holds a work-item that it has not begun; so what one waits for is being computed by another one.
If that takes long, because the other one's thread is kept from running by other programs, the one that waits leaves, and the
thread that it ran on may sleep, as it would between two launches. The last one never leaves: all that it needs it finds done
or can do itself, however the device runs the work-groups.

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
FIRST_STEP = 3
"""Counters of the whole launch, before the two of each step."""
POLL = 2.0
"""Nanoseconds of a look at a counter."""
PATIENT = 2
"""How many times longer than modelled a work-group waits."""


def in_order(
    name: str,
    steps: tuple[Kernel, ...],
    waits: tuple[tuple[Wait, ...], ...],
    longest: float,
    in_turn: tuple[int, ...] = (),
) -> Kernel:
    """A launch of kernels of which some wait for others (see `Order`).

    Args:
        longest: nanoseconds that a work-group waits at most where all run.
    """
    found = compose("ordered", steps)
    found.name = name
    found.order = Order(f"{name}@order", waits, max(1, round(PATIENT * longest / POLL)), in_turn)
    found.note_borders()
    return found


def places(order: Order) -> int:
    """How many counters an ordered launch has."""
    return FIRST_STEP + 2 * len(order.waits)


def counters(kernels: Iterable[Kernel]) -> dict[str, Stored]:
    """The memory of the counters of those kernels that are ordered launches: zeros, as each run leaves them."""
    return {order.state: _counters(order) for kernel in kernels if (order := kernel.order) is not None}


def _counters(order: Order) -> Stored:
    zeros = np.zeros(LINE * places(order), np.int32)
    return Stored(order.state, TensorType("int32", zeros.shape), row_major(1), "constant", "int32", zeros)


# --- launches that follow each other ---


@dataclass(frozen=True)
class _Launch:
    """A kernel and its times on the device.

    Attributes:
        known: whether the number of its work-items is known before it runs.
        time: nanoseconds on one unit.
        idle: nanoseconds for which units wait for its last work-items.
        longest: nanoseconds of a work-item.
    """

    kernel: Kernel
    known: bool
    time: float = 0.0
    idle: float = 0.0
    longest: float = 0.0


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
    late = -size % machine.units + machine.late_unit
    return _Launch(kernel, True, time, time / size * late, time / size)


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
    """Whether what units lose while they wait, where between launches they would sleep, is little.

    Small kernels may wait for small ones. Others lose the time of some launches with each wait, because programs beside
    them keep one of the units busy, and that has to be a small part of their own time.
    """
    if not (launch.known and group.members[0].known):
        return False
    needed = [group.members[wait.step] for wait in waits]
    if not needed:
        return True
    idle, few = max(one.idle for one in needed), rule.waits * machine.launch
    if all(one.time <= rule.launches * machine.launch for one in (*needed, launch)):
        return idle <= few
    return idle + few <= sum(one.time for one in (*needed, launch)) * rule.tolerance / 100


def _joined(group: _Group) -> Kernel:
    steps = tuple(member.kernel for member in group.members)
    if len(steps) == 1:
        return steps[0]
    found = in_order(steps[0].name, steps, tuple(group.waits), max(member.longest for member in group.members))
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
