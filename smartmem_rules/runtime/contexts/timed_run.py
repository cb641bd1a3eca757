"""One run, with the times of its launches by OpenCL's profiling events and those of the host's steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.context import ExecutionContext
from smartmem_rules.runtime.feeds import Array
from smartmem_rules.stages import Span


@dataclass(frozen=True, kw_only=True)
class HostStep:
    """What the host did: copied tensors, enqueued launches or waited for them.

    Attributes:
        bytes: of the tensors as the caller has them.
    """

    span: Span
    tensors: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class LaunchTimes:
    """A launch as it was enqueued.

    Attributes:
        called, returned: nanoseconds of the host's clock before and after it was enqueued.
        queued, submitted, started, ended: nanoseconds of the device's clock, as OpenCL's profiling event gives them.
    """

    name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    called: int
    returned: int
    queued: int
    submitted: int
    started: int
    ended: int


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """What has to be taken from the device's clock to get the host's, in nanoseconds, and how far off that may be."""

    nanoseconds: int
    uncertainty: int


@dataclass(frozen=True, kw_only=True)
class RunTimes:
    """When everything in one run happened.

    Attributes:
        steps: of the host, one after the other.
        launches: in the order of execution.
    """

    steps: tuple[HostStep, ...]
    launches: tuple[LaunchTimes, ...]

    def offset(self) -> ClockOffset:
        """How the clocks differ: each launch was queued while the host was in the call that enqueued it."""
        if not self.launches:
            return ClockOffset(nanoseconds=0, uncertainty=0)
        least = max(one.queued - one.returned for one in self.launches)
        most = min(one.queued - one.called for one in self.launches)
        return ClockOffset(nanoseconds=(least + most) // 2, uncertainty=-(-abs(most - least) // 2))


def timed_run(
    context: ExecutionContext, queue: Any, arrays: Mapping[str, Array], values: dict[str, int]
) -> tuple[dict[str, Array], RunTimes]:
    """Like `ExecutionContext.run`, but each step ends before the next one begins.

    The first step is a run over the same inputs that warms up: drivers compile late.

    Args:
        queue: of the same device, with profiling; the launches are enqueued there.
    """
    steps: list[HostStep] = []

    @contextmanager
    def step(name: str, tensors: Mapping[str, Array] | None = None) -> Iterator[None]:
        start = time.perf_counter_ns()
        yield
        span = Span(name=name, start=start, end=time.perf_counter_ns())
        moved = tensors or {}
        steps.append(HostStep(span=span, tensors=tuple(moved), bytes=sum(one.nbytes for one in moved.values())))

    with step("warm-up"):
        context.run(arrays, values)
    for name, array in arrays.items():
        with step("input", {name: array}):
            context.upload({name: array})
            context.queue.finish()
    enqueued = []
    with step("enqueue"):
        for launch in context.launches:
            called = time.perf_counter_ns()
            (event,) = context.enqueue(queue, (launch,))
            enqueued.append((launch, called, time.perf_counter_ns(), event.profile))
    with step("wait"):
        queue.finish()
    context.complain()
    outputs: dict[str, Array] = {}
    with step("outputs", outputs):
        outputs.update(context.download())
    launches = tuple(
        LaunchTimes(
            name=launch.name,
            global_size=launch.global_size,
            local_size=launch.local_size,
            called=called,
            returned=returned,
            queued=profile.queued,
            submitted=profile.submit,
            started=profile.start,
            ended=profile.end,
        )
        for launch, called, returned, profile in enqueued
    )
    return outputs, RunTimes(steps=tuple(steps), launches=launches)
