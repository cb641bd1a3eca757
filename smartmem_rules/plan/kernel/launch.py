"""What one enqueue runs: a kernel, or several in one of the ways in which kernels share a launch.

A launch is a `Single`, `Chain`, `Beside`, `Wave` or `Ordered`; those of several kernels hold launches again, their
steps, which are not enqueued by themselves. A plan from a file holds `Recorded` launches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

from smartmem_rules.plan.kernel.launch_printer import launch_text, order_lines, row_lines, single_lines
from smartmem_rules.plan.kernel.model import Kernel, KernelSchedule
from smartmem_rules.plan.kernel.work_items import BlockRows, Grid, Note, Part, TaskGraph
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """What every launch has once the memory of its tensors and its size are known.

    Attributes:
        grid: how many work-items it has.
        in_place: for tensors that it writes into the memory of one that it reads, which one.
        bytes_moved: of the tensors that it reads and writes.
    """

    grid: Grid | None = None
    in_place: Mapping[str, str] = field(default_factory=dict)
    bytes_moved: int = 0

    def __str__(self) -> str:
        return launch_text(self)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Single(Enqueued):
    """One kernel.

    Attributes:
        block_rows: rows of a work-item, where the launch decides that and not the kernel's schedule.
        steps_each: steps of a work-item, of a recurrence that is cut into shares.
    """

    kernel: Kernel
    block_rows: int | None = None
    steps_each: int | None = None

    @property
    def name(self) -> str:
        return self.kernel.name

    def each(self, change: Callable[[Single], Single]) -> Single:
        """The launch that `change` gives for this one; launches of several change each kernel."""
        return change(self)

    def with_in_place(self, in_place: Mapping[str, str]) -> Self:
        """The launch with what it writes into the memory of which other tensors."""
        return replace(self, in_place=in_place)

    def lines(self) -> Iterator[str]:
        """The part of its text that says what is computed."""
        return single_lines(self)

    @property
    def steps(self) -> tuple[Launch, ...]:
        """The launches that it holds: none."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What its text says of each step."""
        return ()

    @property
    def form(self) -> str:
        """The kernel's form; for launches of several the way in which they share the launch."""
        return self.kernel.form

    @property
    def singles(self) -> tuple[Single, ...]:
        """The launches of one kernel each that it consists of: itself."""
        return (self,)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels that the launch runs."""
        return (self.kernel,)

    @property
    def origin(self) -> tuple[str, ...]:
        """The ONNX nodes that it stands for."""
        return self.kernel.origin

    @property
    def moves_only(self) -> bool:
        """Whether it only moves data."""
        return self.kernel.moves_only

    @property
    def operations(self) -> int:
        """Scalar operations."""
        return self.kernel.operations

    @property
    def schedule(self) -> KernelSchedule | None:
        """The schedule of a single kernel, once it has one; none of launches of several."""
        return self.kernel.schedule

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that are there before."""
        return self.kernel.reads

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that are there afterwards."""
        return self.kernel.writes


@dataclass(frozen=True, kw_only=True)
class Recorded(Single):
    """A launch of a plan from a file: name, tensors and figures of all that it computes, without equations.

    Attributes:
        kernel: what the file says of the launch as if it were one kernel, its form that of the launch.
    """


@dataclass(frozen=True, kw_only=True)
class Several(Enqueued):
    """A launch of several kernels.

    Attributes:
        name: of its first kernel, unless another one says more.
        steps: the launches that it holds.
    """

    form: ClassVar[str]
    name: str
    steps: tuple[Launch, ...]

    def each(self, change: Callable[[Single], Single]) -> Self:
        """The same launch of changed kernels."""
        return self.of_steps(tuple(step.each(change) for step in self.steps))

    def of_steps(self, steps: tuple[Launch, ...]) -> Self:
        """The same launch of other steps."""
        return replace(self, steps=steps)

    def with_in_place(self, in_place: Mapping[str, str]) -> Self:
        """The launch, and its steps, with what it writes into the memory of which other tensors."""
        steps = tuple(step.with_in_place(in_place) for step in self.steps)
        return replace(self.of_steps(steps), in_place=in_place)

    def lines(self) -> Iterator[str]:
        """The part of its text that says how the steps share the launch."""
        return iter(())

    @property
    def notes(self) -> tuple[str, ...]:
        """What its text says of each step."""
        return ("",) * len(self.steps)

    @property
    def only(self) -> tuple[int | None, ...]:
        """For each step the one of its work-items that runs, None where all do."""
        return (None,) * len(self.steps)

    @property
    def inside(self) -> Collection[str]:
        """Tensors that are there within the launch only."""
        return ()

    @property
    def counters(self) -> str | None:
        """The tensor by which work-items follow each other, which the launch writes beside its steps."""
        return None

    @property
    def singles(self) -> tuple[Single, ...]:
        """The launches of one kernel each that it consists of."""
        return tuple(single for step in self.steps for single in step.singles)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels that the launch runs."""
        return tuple(single.kernel for single in self.singles)

    @property
    def origin(self) -> tuple[str, ...]:
        """The ONNX nodes that it stands for."""
        return tuple(dict.fromkeys(node for step in self.steps for node in step.origin))

    @property
    def moves_only(self) -> bool:
        """Whether it only moves data."""
        return all(step.moves_only for step in self.steps)

    @property
    def operations(self) -> int:
        """Scalar operations."""
        return sum(step.operations for step in self.steps)

    @property
    def schedule(self) -> KernelSchedule | None:
        """None: each kernel has its own."""
        return None

    @cached_property
    def writes(self) -> tuple[str, ...]:
        """The tensors that are there afterwards."""
        return tuple(t for t in self._written if t not in self.inside)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The tensors that are there before."""
        read = dict.fromkeys(t for step in self.steps for t in step.reads)
        return tuple(t for t in read if t not in self._written)

    @cached_property
    def _written(self) -> dict[str, None]:
        return dict.fromkeys((*(t for step in self.steps for t in step.writes), *self._beside))

    @property
    def _beside(self) -> tuple[str, ...]:
        """What the launch itself writes, besides its steps."""
        return () if self.counters is None else (self.counters,)


@dataclass(frozen=True, kw_only=True)
class Chain(Several):
    """Kernels one after the other in each work-item.

    Attributes:
        rows: which rows a work-item owns; None where it owns all of a batch, the only row, or a share of a recurrence's
            steps.
    """

    form: ClassVar[str] = "chain"
    steps: tuple[Single, ...]
    rows: BlockRows | None = None

    def lines(self) -> Iterator[str]:
        return iter(()) if self.rows is None else row_lines(self.rows)

    @property
    def inside(self) -> Collection[str]:
        return () if self.rows is None else self.rows.kept


@dataclass(frozen=True, kw_only=True)
class Beside(Several):
    """Independent launches side by side: horizontal fusion.

    Attributes:
        group_items: work-items of the work-groups of all steps on a GPU, 0 where the steps' work-items follow each
            other one by one.
    """

    form: ClassVar[str] = "beside"
    group_items: int = 0


@dataclass(frozen=True, kw_only=True)
class Wave(Several):
    """One share of each of several recurrences, side by side.

    Attributes:
        shares: into how many shares the steps of each recurrence are cut.
        numbers: the share of each step that runs.
    """

    form: ClassVar[str] = "beside"
    steps: tuple[Chain, ...]
    shares: int
    numbers: tuple[int, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"share {number} of {self.shares}" for number in self.numbers)

    @property
    def only(self) -> tuple[int | None, ...]:
        return self.numbers

    @property
    def operations(self) -> int:
        return sum(step.operations // self.shares for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class Ordered(Several):
    """A persistent kernel with task counters: each step's work-items begin when those of others are done.

    Attributes:
        tasks: which those are.
        group_items: on GPUs, where work-groups take the work-groups of the steps as tasks, the work-items of each; 0
            where work-items follow each other one by one.
        groups: work-groups that take tasks; of CPUs the grid says how many.
        local_bytes: on GPUs, of local memory that each work-group takes at least, so that no more of them than planned
            share a unit.
        note: on GPUs, where the launch notes behind the elements of a tensor whether its work-groups waited in vain.
        held: tensors that are there within the launch only, as parts of others: each argument costs the host time.
    """

    form: ClassVar[str] = "ordered"
    tasks: TaskGraph
    group_items: int = 0
    groups: int = 0
    local_bytes: int = 0
    note: Note | None = None
    held: Mapping[str, Part] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        return order_lines(self.tasks, [step.name for step in self.steps])

    @property
    def inside(self) -> Collection[str]:
        return self.held

    @property
    def containers(self) -> tuple[str, ...]:
        """The tensors of which others are parts."""
        return tuple(dict.fromkeys(part.container for part in self.held.values()))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The tensors that are there before; what parts are of that no step writes among them."""
        own = [name for name in super().reads if name not in self.held]
        return (*own, *(name for name in self.containers if name not in self._written))

    @property
    def _beside(self) -> tuple[str, ...]:
        parts = {self.held[t].container: None for step in self.steps for t in step.writes if t in self.held}
        return (*super()._beside, *(() if self.note is None else (self.note.tensor,)), *parts)

    @property
    def counters(self) -> str | None:
        return self.tasks.state


Joined: TypeAlias = Chain | Beside | Wave | Ordered
"""A launch of several kernels."""
Launch: TypeAlias = Single | Joined
"""What one enqueue runs."""
