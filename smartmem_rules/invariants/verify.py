"""All checks of a stage's result together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from smartmem_rules.environment import VERIFY
from smartmem_rules.invariants.bounds import check_bounds
from smartmem_rules.invariants.layouts import check_layouts, check_sources
from smartmem_rules.invariants.memory import check_memory
from smartmem_rules.invariants.order import check_order
from smartmem_rules.invariants.tasks import check_tasks
from smartmem_rules.invariants.writes import check_writes
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored


def in_full() -> bool:
    """Whether the environment asks for thorough checks in every optimization."""
    return VERIFY.value() == "full"


def verify_kernels(
    launches: Sequence[Launch], tensors: Mapping[str, Stored], outputs: Collection[str], thorough: bool = False
) -> None:
    """Check the kernels that fusion gives, and the launches into which they are joined, before they are sized.

    Raises:
        InvariantError: a read is not behind the writes of what it reads, an element is not written exactly once, or an
            index leaves its tensor.
    """
    kernels = [kernel for launch in launches for kernel in launch.kernels]
    made = {name for kernel in kernels for name in kernel.writes}
    check_order(launches, tensors, [name for name in outputs if name in made])
    check_writes(kernels, tensors, thorough)
    check_bounds(kernels, tensors, thorough)


def verify_plan(plan: Plan, thorough: bool = False) -> None:
    """Check a plan as it will run.

    Args:
        thorough: also check the kernels again, as they are after sizing, element by element where that decides, and
            follow the texts of small launches.

    Raises:
        InvariantError: a layout holds other elements than its tensor, a kernel's text knows another one, launches run
            before what they read is written, or tensors that are needed at the same time share memory.
    """
    used = {name for launch in plan.launches for name in (*launch.reads, *launch.writes)}
    check_layouts(stored for name, stored in plan.tensors.items() if name in used)
    check_sources(plan.launches, plan.sources, plan.tensors)
    check_memory(plan.launches, plan.tensors, plan.slots, plan.placement)
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        if isinstance(launch, Ordered) and launch.group_items:
            check_tasks(launch, source, plan.tensors, plan.placement)
    kernels = [kernel for launch in plan.launches for kernel in launch.kernels]
    made = {name for kernel in kernels for name in kernel.writes}
    check_order(plan.launches, plan.tensors, [name for name in plan.outputs if name in made])
    if thorough:
        # the parser of kernels' texts takes a while to load
        from smartmem_rules.invariants.launches import check_launches  # start-up time

        check_launches(plan)
        # recurrences that keep their last steps only go round in them
        plain = [kernel for kernel in kernels if kernel.form != "scan"]
        check_writes(plain, plan.tensors, thorough)
        check_bounds(plain, plan.tensors, thorough)
