"""The order in which work-groups of a GPU take the tasks of a launch, as its kernel holds it.

A task is a work-group of a step. Tasks have numbers: those of the first step, then those of the next. A task waits
until all tasks of some steps are done, and these have lower numbers. The kernel (codegen/ordered_groups.cl) holds no
more of the schedule than these numbers, so what holds of them holds of every run (`invariants.tasks`).
"""

from __future__ import annotations

import itertools

from smartmem_rules.plan.kernel.launch import Ordered
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.launch.megakernel import FIRST_STEP
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class TaskOrder:
    """The numbers in the text of such a launch.

    Attributes:
        state: the tensor of the counters: the next task, the work-groups that have left, the step that waited in vain,
            and for each step how many of its tasks are done.
        first: the number of each step's first task, and behind them that of all tasks.
        waits: the place in `awaited` of each step's first wait, and behind them that of all waits.
        awaited: steps.
        polls: looks at a counter after which a work-group gives up.
    """

    state: str
    first: tuple[int, ...]
    waits: tuple[int, ...]
    awaited: tuple[int, ...]
    polls: int

    @staticmethod
    def of(launch: Ordered) -> TaskOrder:
        """The order of a launch whose steps have their grids."""
        counts = [0 if step.grid is None else step.grid.items // launch.group_items for step in launch.steps]
        if any(wait.lag is not None for waits in launch.tasks.waits for wait in waits):
            raise PlanError(f"work-groups of {launch.name} wait for parts of steps, which GPUs do not")
        return TaskOrder(
            state=launch.tasks.state,
            first=tuple(itertools.accumulate(counts, initial=0)),
            waits=tuple(itertools.accumulate(map(len, launch.tasks.waits), initial=0)),
            awaited=tuple(wait.step for waits in launch.tasks.waits for wait in waits),
            polls=launch.tasks.patience,
        )

    @property
    def counters(self) -> int:
        """How many counters there are."""
        return FIRST_STEP + len(self.first) - 1
