"""Launches whose work-groups wait for each other give up where they wait for too long: a run asks whether they did.

Such a launch writes a note behind the elements of an output: 0, or the number of the step that waited in vain. The copy
of the output to the host takes it along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.kernel.storage import SLACK
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.feeds import Array

NOTE = np.dtype(np.int32)


def noted_outputs(plan: Plan) -> frozenset[str]:
    """The outputs behind which launches leave notes."""
    return frozenset(one.arguments[one.waiting.noted].tensor for one in plan.sources if one.waiting is not None)


def with_notes(size: int) -> int:
    """Bytes of a tensor of so many bytes and of the notes behind."""
    return size + SLACK


def complain(names: Iterable[str], sources: Iterable[Source], copies: dict[str, Array]) -> None:
    """Raise where a launch gave up.

    Args:
        names: of the launches.
        copies: the bytes of outputs with the notes behind.

    Raises:
        RunError: a launch gave up; the error names the kernel that waited.
    """
    for name, source in zip(names, sources, strict=True):
        waiting = source.waiting
        if waiting is None:
            continue
        copy = copies[source.arguments[waiting.noted].tensor]
        begin = waiting.element * NOTE.itemsize
        step = int(copy[begin : begin + NOTE.itemsize].view(NOTE)[0])
        if step:
            kernel = waiting.steps[step - 1] if 0 < step <= len(waiting.steps) else f"number {step}"
            raise RunError(
                f"the launch {name} gave up: its kernel {kernel} waited for others for too long; run the model again, "
                "and if that fails too, optimize it with --disable one_after_another_in_groups"
            )


def copied(queue: Any, memory: Any, size: int) -> Array:
    """The bytes of an output that the caller keeps on the device, with the notes behind."""
    import pyopencl as cl

    host = np.empty(with_notes(size), np.uint8)
    cl.enqueue_copy(queue, host, memory, is_blocking=True)
    return host
