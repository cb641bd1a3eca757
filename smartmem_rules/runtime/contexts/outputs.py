"""Outputs whose extents, or whose truth, only a run tells."""

from __future__ import annotations

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.feeds import Array


class UnendedLoopError(RunError):
    """A loop whose end depends on data takes more steps than it was unrolled for; the message says which."""


def as_told(plan: Plan, outputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a model, as long as the plan's other outputs say that they are.

    Args:
        outputs: all that the plan has, those that only tell among them.

    Raises:
        UnendedLoopError: a loop has not ended for these inputs.
    """
    told = {name: int(outputs[name]) for name in plan.told}
    if plan.endings is not None and told[plan.endings.number]:
        raise UnendedLoopError(plan.endings.complaint(told[plan.endings.number]))
    found = {name: array for name, array in outputs.items() if name not in told}
    for name, axes in plan.sizes.items():
        for axis, count in axes.items():
            found[name] = found[name].take(range(told[count]), axis)
    return found
