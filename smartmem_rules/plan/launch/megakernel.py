"""Fuses dependent kernels into one persistent launch with task counters.

Work-groups go through the kernels in their order and take work-items from counters, each when all that it needs is
done (codegen/ordered.cl). None holds a work-item that it has not begun; so what one waits for is being computed by
another one. If that takes long, because the other one's thread is kept from running by other programs, the one that
waits leaves, and the thread that it ran on may sleep, as it would between two launches. The last one never leaves: all
that it needs it finds done or can do itself, however the device runs the work-groups.

Launches that follow each other are joined when all else is decided: which memory a tensor has, also which one had it
before. A kernel waits for those that write what it reads or writes, or read what it writes, by the places in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Megakernel
from smartmem_rules.plan.artefact import Place
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored, row_major
from smartmem_rules.plan.kernel.work_items import TaskGraph, Wait
from smartmem_rules.plan.launch.operands import number_together, operands_of
from smartmem_rules.plan.launch.touched import Touched, waits_behind
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import is_symbolic

LINE_COUNTERS = 16
"""Elements of int32 from one counter to the next: each lies in a line of the cache of its own."""
FIRST_STEP = 3
"""Counters of the whole launch, before those of each step."""
LEFT, FAILED = 1, 2
"""Where work-groups of GPUs count that they leave, and note the step for which they waited in vain."""


def megakernel(
    name: str,
    steps: tuple[Launch, ...],
    waits: tuple[tuple[Wait, ...], ...],
    patience: int,
    in_turn: tuple[int, ...] = (),
) -> Ordered:
    """A launch of steps of which some wait for others (see `TaskGraph`).

    Args:
        patience: how often a waiting work-group looks at a counter before it leaves its work to others.
    """
    tasks = TaskGraph(state=f"{name}@order", waits=waits, patience=patience, in_turn=in_turn)
    return Ordered(name=name, steps=steps, tasks=tasks)


def spin_limit(longest: float, rest: float, device: Device, rule: Megakernel | None) -> int:
    """How often a waiting work-group looks at a counter at most.

    Who leaves costs the launch a unit: what remains takes the others longer. It waits as long as that, so that at most
    twice the time is lost of what could have been, whether or not the other thread runs (the ski rental problem).

    Args:
        longest: modelled nanoseconds of the work that it waits for.
        rest: modelled nanoseconds on one unit of what remains of the launch.
        rule: says how many times longer it waits; as long as modelled where None.
    """
    patience = 1.0 if rule is None else rule.patience
    units = max(2, device.compute.units)
    lost = rest / (units - 1) - rest / units
    return max(1, round(max(patience * longest, lost) / device.compute.poll_ns))


def places(order: TaskGraph) -> int:
    """How many counters an ordered launch has."""
    return FIRST_STEP + 2 * len(order.waits)


def counters(launches: Iterable[Launch]) -> dict[str, Stored]:
    """The memory of the counters of ordered launches among others: zeros, as each run leaves them."""
    return {one.tasks.state: _counters(one.tasks) for one in launches if isinstance(one, Ordered)}


def _counters(order: TaskGraph) -> Stored:
    zeros = np.zeros(LINE_COUNTERS * places(order), np.int32)
    return Stored(
        name=order.state,
        type=TensorType("int32", zeros.shape),
        layout=row_major(1),
        role="constant",
        storage="int32",
        packed=zeros,
    )


# --- launches that follow each other ---


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A launch and its times on the device.

    Attributes:
        known: whether the number of its work-items is known before it runs.
        time: nanoseconds on one unit.
        idle: nanoseconds for which units wait for its last work-items.
        longest: nanoseconds of a work-item.
    """

    launch: Launch
    known: bool
    time: float = 0.0
    idle: float = 0.0
    longest: float = 0.0

    @property
    def operands(self) -> frozenset[str]:
        """The tensors that it reads and writes."""
        return operands_of(self.launch)


@dataclass
class _Group:
    """Launches that become one."""

    members: list[_Member] = field(default_factory=list)
    waits: list[tuple[Wait, ...]] = field(default_factory=list)
    operands: set[str] = field(default_factory=set)

    def add(self, member: _Member, waits: tuple[Wait, ...]) -> None:
        """Take in a launch that waits for some of those before it."""
        self.members.append(member)
        self.waits.append(waits)
        self.operands.update(member.operands)

    def waits_of(self, launch: Launch, touched: Touched) -> tuple[Wait, ...]:
        """The members that a further launch has to wait for."""
        return waits_behind(launch, [member.launch for member in self.members], self.waits, touched)


def join_launches(
    launches: Sequence[Launch],
    memory: tuple[Mapping[str, Stored], Mapping[str, Place]],
    rule: Megakernel,
    device: Device,
    refusals: Refusals | None = None,
) -> list[Launch]:
    """The launches, those of them joined that do not have to wait longer for each other than the rule admits.

    Args:
        launches: with their grids.
        memory: all tensors, and the places of intermediates.
        refusals: takes in why launches stay apart.
    """
    rule = replace(rule, operands=min(rule.operands, device.compute.parameters))
    touched = Touched(*memory)
    groups: list[_Group] = []
    for launch in launches:
        member = _member(launch, device)
        waits = groups[-1].waits_of(launch, touched) if groups else ()
        if groups and _joins(groups[-1], member, waits, rule, device):
            groups[-1].add(member, waits)
        else:
            if groups and refusals is not None:
                reason, figures = _refusal(groups[-1], member, waits, rule, device)
                before = [node for one in groups[-1].members for node in one.launch.origin]
                refusals.note(rule.name, before, launch.origin, reason, figures, 9)
            groups.append(_Group())
            groups[-1].add(member, ())
    return [_joined(group, rule, device) for group in groups]


def _member(launch: Launch, device: Device) -> _Member:
    assert launch.grid is not None
    size = launch.grid.items
    if is_symbolic(size) or size == 0 or isinstance(launch, Ordered):
        return _Member(launch=launch, known=False)
    time = max(device.compute.unit_time(launch.operations), launch.bytes_moved / device.memory.of_unit)
    # units without a work-item in the last round, and those that wait for a late one
    late = -size % device.compute.units + device.compute.late_unit
    return _Member(launch=launch, known=True, time=time, idle=time / size * late, longest=time / size)


def _joins(group: _Group, member: _Member, waits: tuple[Wait, ...], rule: Megakernel, device: Device) -> bool:
    """Whether what units lose while they wait, where between launches they would sleep, is little.

    Small kernels may wait for small ones. Others lose the time of some launches with each wait, because programs beside
    them keep one of the units busy, and that has to be a small part of their own time.
    """
    if not (member.known and group.members[0].known) or _takes(group, member) > rule.operands:
        return False
    needed = [group.members[wait.step] for wait in waits]
    if not needed:
        return True
    idle, few = max(one.idle for one in needed), rule.waits * device.compute.launch
    if all(one.time <= rule.launches * device.compute.launch for one in (*needed, member)):
        return idle <= few
    return idle + few <= sum(one.time for one in (*needed, member)) * rule.loss / 100


def _takes(group: _Group, member: _Member) -> int:
    """The tensors that a launch of all of them reads and writes."""
    return number_together(group.operands, member.operands)


def _refusal(
    group: _Group, member: _Member, waits: tuple[Wait, ...], rule: Megakernel, device: Device
) -> tuple[str, tuple[float, float] | None]:
    """Why a launch that `_joins` refuses stays apart, with what is lost and what the rule admits."""
    if not (member.known and group.members[0].known):
        return "how long it takes is not known before it runs", None
    if _takes(group, member) > rule.operands:
        return "tensors that one launch reads and writes", (_takes(group, member), rule.operands)
    needed = [group.members[wait.step] for wait in waits]
    idle, few = max(one.idle for one in needed), rule.waits * device.compute.launch
    if all(one.time <= rule.launches * device.compute.launch for one in (*needed, member)):
        return "modelled ns for which units are idle while they wait", (idle, few)
    own = sum(one.time for one in (*needed, member))
    return f"modelled ns that waiting costs, of {own:.6g} ns", (idle + few, own * rule.loss / 100)


def _joined(group: _Group, rule: Megakernel, device: Device) -> Launch:
    steps = tuple(member.launch for member in group.members)
    if len(steps) == 1:
        return steps[0]
    awaited = [group.members[wait.step].longest for waits in group.waits for wait in waits]
    first = next((step for step, waits in enumerate(group.waits) if waits), len(steps))
    rest = sum(member.time for member in group.members[first:])
    patience = spin_limit(max(awaited, default=0.0), rest, device, rule)
    in_place = {new: old for step in steps for new, old in step.in_place.items()}
    joined = megakernel(steps[0].name, steps, tuple(group.waits), patience)
    return replace(joined, bytes_moved=sum(step.bytes_moved for step in steps), in_place=in_place)
