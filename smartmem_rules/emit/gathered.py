"""The plan of launches that take few arguments, from the plan in which each tensor is one.

Everything is checked in the plan with all tensors; in the other one the same tensors lie at the same distances from
each other, as parts of larger ones. That is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from smartmem_rules.invariants.tasks import check_parts, check_tasks
from smartmem_rules.plan.artefact import Enqueue, Plan, Source
from smartmem_rules.plan.kernel.launch import Launch, Ordered
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.launch.gathering import gathered


def gathered_plan(plan: Plan, emitted: Callable[[Launch, Mapping[str, Stored]], Source]) -> Plan:
    """The plan with the tensors gathered that only one launch knows, of which work-groups take tasks in order.

    Args:
        plan: checked.
        emitted: gives a launch's text over some tensors.

    Raises:
        InvariantError: two tensors share memory that did not before, or the order of tasks has changed.
    """
    if not any(isinstance(launch, Ordered) and launch.group_items for launch in plan.launches):
        return plan
    made = gathered(plan.launches, plan.tensors, plan.placement, plan.slots, {*plan.inputs, *plan.outputs})
    # the steps' texts need the layouts of tensors that are parts
    everything = {**plan.tensors, **made.tensors}
    enqueues: list[Enqueue] = []
    for one, launch in zip(plan.enqueues, made.launches, strict=True):
        if not isinstance(launch, Ordered) or not launch.held:
            enqueues.append(one)
            continue
        source = emitted(launch, everything)
        check_tasks(launch, source, plan.tensors, plan.placement)
        check_parts(launch, everything, plan.placement)
        enqueues.append(Enqueue(launch=launch, source=source))
    tensors, placement = dict(made.tensors), dict(made.placement)
    return replace(plan, enqueues=enqueues, tensors=tensors, slots=made.slots, placement=placement)
