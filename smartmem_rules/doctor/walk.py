"""Finding the launch at which a model goes wrong: its results, beside what its expressions give for its inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.packing import unpacked
from smartmem_rules.plan.probe import Probe
from smartmem_rules.probes.evaluation import Unanswered
from smartmem_rules.probes.making import probe_of
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.context import ExecutionContext
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.selftest.asking import Difference, difference
from smartmem_rules.runtime.selftest.testing import asker_of
from smartmem_rules.tensor.primitives import Array


@dataclass(frozen=True, kw_only=True)
class Step:
    """A launch that computes something else than its expressions, for the inputs that it had.

    Attributes:
        number: of the launch.
        probe: its inputs, and what it must give.
    """

    number: int
    kernel: str
    probe: Probe
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True)
class Walk:
    """What a walk along a plan's launches found.

    Attributes:
        step: the first launch that is wrong, None where none is.
        looked_at: how many launches were.
        unasked: the others, with the reason.
    """

    step: Step | None
    looked_at: int
    unasked: Mapping[str, str]


def walked(
    executor: Executor,
    tensors: Mapping[str, Stored],
    constants: Mapping[str, Array],
    feeds: Mapping[str, Array],
    progress: Callable[[int, int], None] | None = None,
) -> Walk:
    """Run a plan launch by launch and compare each one's results with what its inputs give.

    A launch is judged by its own inputs, so that none is blamed for the mistake of one before it.

    Args:
        tensors: those of the plan, and those of which launches keep a part to themselves.
        constants: the values of the model's constants by name.
        feeds: the inputs of the model, of its shapes and types.
    """
    plan = executor.plan
    asker = asker_of(executor)
    unasked: dict[str, str] = {}
    looked_at = 0
    with executor.taken() as context:
        context.upload(feeds)
        for number, launch in enumerate(context.launches):
            held = _held(context, plan, number)
            context.enqueue(context.queue, (launch,))
            context.queue.finish()
            if progress is not None:
                progress(number + 1, len(context.launches))
            try:
                probe = probe_of(plan, tensors, constants, number, held)
            except Unanswered as reason:
                unasked[launch.name] = str(reason)
                continue
            looked_at += 1
            found = tuple(asker.differences(probe)) or _in_place(context, plan, probe, number)
            if found:
                step = Step(number=number, kernel=launch.name, probe=probe, differences=found)
                return Walk(step=step, looked_at=looked_at, unasked=unasked)
    return Walk(step=None, looked_at=looked_at, unasked=unasked)


def _held(context: ExecutionContext, plan: Plan, number: int) -> dict[str, Array]:
    """What the tensors hold that a launch reads, constants aside."""
    tensors = (plan.tensors[a.tensor] for a in plan.enqueues[number].source.arguments if a.access == "read")
    return {
        tensor.name: unpacked(context.memory(tensor.name), tensor.layout, tensor.type.shape)
        for tensor in tensors
        if tensor.role != "constant" and tensor.layout.memory != "scratch"
    }


def _in_place(context: ExecutionContext, plan: Plan, probe: Probe, number: int) -> tuple[Difference, ...]:
    """What is wrong in the plan's own memory, where tensors share it: a kernel may be right in memory of its own only.

    A piece of memory that the launch writes twice holds the second result, so that nothing is said of the first.
    """
    arguments = plan.enqueues[number].source.arguments
    written = [a.tensor for a in arguments if a.access == "write"]
    slots = Counter(plan.placement[name].slot for name in written if name in plan.placement)
    found = []
    for answer in probe.answers:
        tensor = plan.tensors[arguments[answer.argument].tensor]
        place = plan.placement.get(tensor.name)
        if place is None or slots[place.slot] == 1:
            found.append(difference(context.memory(tensor.name), answer.rows.array(), answer.bound, tensor))
    return tuple(one for one in found if one is not None)
