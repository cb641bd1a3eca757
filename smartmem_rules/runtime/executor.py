"""Runs a plan on an OpenCL device: every kernel's arguments are set once, only outputs are copied back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import field
from functools import partial
from typing import Any, TypedDict

import numpy as np

from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.alike import LikeConstants
from smartmem_rules.runtime.contexts.context import BoundsError, Built, ExecutionContext
from smartmem_rules.runtime.contexts.memory import PlanMemory, RunError, context_bytes, device_bytes
from smartmem_rules.runtime.contexts.outputs import UnendedLoopError
from smartmem_rules.runtime.contexts.pinned import pinned_array
from smartmem_rules.runtime.contexts.pool import ContextPool
from smartmem_rules.runtime.contexts.timed_run import RunTimes, timed_run
from smartmem_rules.runtime.devices import Device, DeviceError, check_driver
from smartmem_rules.runtime.feeds import Array, ClosedInputs, check_feeds, extents_of, random_feeds
from smartmem_rules.runtime.fitting import refuse_unfit
from smartmem_rules.runtime.forks import refuse_in_child
from smartmem_rules.runtime.programs.compiling import BuildError, Programs
from smartmem_rules.runtime.programs.shared_programs import context_on
from smartmem_rules.tensor.types import TensorType

CONTEXTS = 4
"""Runs of one plan that may happen side by side: each has memory for its own intermediates."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """What plans share that work on the same memory: an OpenCL context, and the constants that are equal."""

    context: Any
    alike: LikeConstants = field(default_factory=dict)


class Latency(TypedDict):
    """The times of whole inferences in milliseconds; `kernels` is None where a system does not tell."""

    median_ms: float
    min_ms: float
    max_ms: float
    quartile_1_ms: float
    quartile_3_ms: float
    runs: int
    kernels: int | None
    device: str


class Executor:
    """A plan that is ready to run: built kernels, packed constants on the device, memory for everything else.

    Several threads may run it at once. Each run takes an execution context (queue, kernel objects, intermediates) for
    itself; further ones are opened by need, and where there may not be more of them, runs wait for each other.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        progress: Callable[[int, int], None] | None = None,
        debug: bool = False,
        contexts: int = CONTEXTS,
        home: Home | None = None,
        outside: Collection[str] = (),
    ) -> None:
        """Build the kernels and fill the device's memory.

        Args:
            debug: the kernels check each read and write of device memory, and runs raise `BoundsError`.
            progress: called with the numbers of distinct kernel texts built and to build.
            contexts: how many runs may happen side by side, each with memory for its own intermediates.
            home: what the plan shares with others that work on the same memory.
            outside: inputs and outputs whose memory is bound before each run (`ExecutionContext.bind`).

        Raises:
            DeviceError: the device's driver is refused (`check_driver`).
            BuildError: the OpenCL compiler refuses a kernel.
            RunError: the device has too little memory, its images, work-groups or local memory are too small, it lacks
                an extension, it is not one for which work-groups may wait for each other, or this process is a fork of
                the one that opened the device.
        """
        import pyopencl as cl

        refuse_in_child(RunError)
        check_driver(device)
        refuse_unfit(plan, device)
        self.plan = plan
        self.device = device
        self.input_types = input_types(plan)
        self._closed = ClosedInputs.of(self.input_types)
        context = context_on(device) if home is None else home.context
        names = [launch.name for launch in plan.launches]
        sources = _checked(plan) if debug else plan.sources
        programs = Programs(context, device, sources, names, progress, binaries=plan.binaries)
        self.programs = programs.count
        queue = cl.CommandQueue(context, device.handle)
        memory = PlanMemory(plan, device, context, queue, None if home is None else home.alike, outside)
        self.built = Built(
            plan=plan, device=device, context=context, programs=programs, sources=sources, memory=memory, debug=debug
        )
        # not a method: without a cycle of references the device's memory is free when the last user lets go
        self._contexts = ContextPool(partial(_open, self.built), contexts)
        self._runs = itertools.count()

    @property
    def device_bytes(self) -> int:
        """The device memory that the plan needs, in bytes, for all execution contexts that are open."""
        return device_bytes(self.plan) + (self.contexts - 1) * context_bytes(self.plan)

    @property
    def contexts(self) -> int:
        """How many execution contexts are open: as many runs as happened side by side so far."""
        return self._contexts.opened

    def run(self, feeds: Mapping[str, object]) -> dict[str, Array]:
        """One inference.

        Args:
            feeds: an array for every input, of the model's shape and element type. Where the plan draws random
                numbers, `RUN_NUMBER` may say which: an int64 scalar, by default how many runs there were before.

        Returns:
            new arrays of the model's element types, by output.

        Raises:
            GraphError: an input is missing, unknown, or of a wrong shape or element type.
            RunError: the device refuses a kernel, or this process is a fork of the one that opened the device.
            BoundsError: a kernel of a debug build read or wrote outside a tensor.
            UnendedLoopError: a loop whose end depends on data takes more steps than it was unrolled for.
        """
        arrays = self._checked_feeds(feeds)
        values = {} if self._closed is not None else extents_of(self.input_types, arrays)
        with self._contexts.taken() as context:
            return context.run(arrays, values)

    def pinned(self, feeds: Mapping[str, object]) -> dict[str, Array]:
        """Copies of inputs in memory of the host from which the device copies by itself, which saves a copy.

        The arrays may be written anew between runs, and given to this executor's runs again and again. On devices
        that compute in the host's memory they are ordinary arrays.

        Raises:
            GraphError: an input is missing, unknown, or of a wrong shape or element type.
            RunError: the device has too little memory, or this process is a fork of the one that opened the device.
        """
        import pyopencl as cl

        refuse_in_child(RunError)
        arrays = check_feeds(self.input_types, feeds)
        if self.device.host_memory:
            return {name: array.copy() for name, array in arrays.items()}
        queue = cl.CommandQueue(self.built.context, self.device.handle)
        found = {}
        try:
            for name, array in arrays.items():
                bytes_ = pinned_array(self.built.context, queue, (max(1, array.nbytes),), np.dtype(np.uint8))
                found[name] = bytes_[: array.nbytes].view(array.dtype).reshape(array.shape)
                np.copyto(found[name], array)
                self.built.pinned.add(found[name])
        except cl.Error as error:
            raise RunError(f"{self.device.name} has no memory of the host for the inputs: {error}") from error
        return found

    def traced_run(self, feeds: Mapping[str, object]) -> tuple[dict[str, Array], RunTimes]:
        """One inference and its times, after one over the same inputs that warms up; raises what `run` does."""
        arrays = self._checked_feeds(feeds)
        values = extents_of(self.input_types, arrays)
        queue = self._profiling_queue()
        with self._contexts.taken() as context:
            return timed_run(context, queue, arrays, values)

    def _checked_feeds(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The inputs of a run, with the number of the run where the plan draws random numbers."""
        if RUN_NUMBER in self.input_types and RUN_NUMBER not in feeds:
            feeds = {**feeds, RUN_NUMBER: np.asarray(next(self._runs), np.int64)}
        closed = None if self._closed is None else self._closed.as_given(feeds)
        return check_feeds(self.input_types, feeds) if closed is None else closed

    def _profiling_queue(self) -> Any:
        import pyopencl as cl

        properties = cl.command_queue_properties.PROFILING_ENABLE
        return cl.CommandQueue(self.built.context, self.device.handle, properties=properties)

    def benchmark(self, runs: int = 10, warmup: int = 2, feeds: Mapping[str, object] | None = None) -> Latency:
        """The time of whole inferences, from inputs on the host to outputs on the host.

        Returns:
            {median_ms, min_ms, max_ms, runs, kernels, device}.

        Args:
            feeds: the inputs; random ones if None.
        """
        given = random_feeds(self.input_types) if feeds is None else dict(feeds)
        for _ in range(warmup):
            self.run(given)
        times = [self.timed_run(given) for _ in range(max(1, runs))]
        return summary(times, len(self.plan.launches), self.device.name)

    def timed_run(self, feeds: Mapping[str, object]) -> float:
        """The milliseconds of one inference."""
        start = time.perf_counter()
        self.run(feeds)
        return (time.perf_counter() - start) * 1e3

    def profile(self, feeds: Mapping[str, object] | None = None) -> list[tuple[str, float]]:
        """Every kernel's name and milliseconds on the device, in the order of execution."""
        arrays = check_feeds(self.input_types, random_feeds(self.input_types) if feeds is None else feeds)
        queue = self._profiling_queue()
        with self._contexts.taken() as context:
            with suppress(UnendedLoopError):  # a kernel takes as long then
                context.run(arrays, extents_of(self.input_types, arrays))
            events = context.enqueue(queue)
            queue.finish()
            return [
                (launch.name, (event.profile.end - event.profile.start) * 1e-6)
                for launch, event in zip(context.launches, events, strict=True)
            ]

    def binaries(self) -> dict[str, bytes]:
        """The compiled programs by their keys in the program cache; a run has the driver compile what it does late."""
        with suppress(UnendedLoopError):  # which all kernels ran to find
            self.run(random_feeds(self.input_types))
        return self.built.programs.binaries()

    def taken(self) -> AbstractContextManager[ExecutionContext]:
        """An execution context of one's own, to look at launches one by one."""
        return self._contexts.taken()

    def fetch(self, tensor: str) -> Array:
        """What lies in the memory of a row-major buffer tensor after the last run: for debugging kernels."""
        with self._contexts.taken() as context:
            return context.fetch(tensor)

    def poison(self) -> None:
        """Fill the intermediates of the next run with NaN, which a kernel that reads what none wrote hands on."""
        with self._contexts.taken() as context:
            context.poison()

    def magnitudes(self, feeds: Mapping[str, object]) -> dict[str, float]:
        """The largest magnitude in each buffer of float32 that a kernel writes, looked at after every kernel."""
        arrays = check_feeds(self.input_types, feeds)
        writes = {launch.name: launch.writes for launch in self.plan.launches}
        found: dict[str, float] = {}
        with self._contexts.taken() as context:
            context.set_extents(extents_of(self.input_types, arrays))
            context.upload(arrays)
            for launch in context.launches:
                context.enqueue(context.queue, (launch,))
                for name in writes[launch.name]:
                    stored = self.plan.tensors.get(name)
                    if stored is not None and stored.layout.memory == "buffer" and stored.storage == "float32":
                        found[name] = float(np.abs(context.fetch(name)).max(initial=0.0))
        return found


def _open(built: Built, number: int) -> ExecutionContext:
    """The execution context with a number, from 1 on, if the device's memory has room for so many."""
    needed = device_bytes(built.plan) + (number - 1) * context_bytes(built.plan)
    if number > 1 and needed > built.device.global_memory:
        raise RunError(f"{built.device.name} has too little memory for {number} runs of this plan at once")
    return ExecutionContext(built)


def _checked(plan: Plan) -> list[Source]:
    """The sources of a debug build."""
    from smartmem_rules.runtime.checks import UncheckedError, checked  # start-up time

    found = []
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        try:
            found.append(checked(source, plan.tensors))
        except UncheckedError as error:
            raise RunError(f"there is no debug build of the kernel {launch.name}: {error}") from error
    return found


def summary(times: list[float], kernels: int | None, device: str) -> Latency:
    """Milliseconds of runs as the table that every benchmark gives."""
    import statistics  # start-up time

    quartiles = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else [times[0]] * 3
    return {
        "median_ms": statistics.median(times),
        "min_ms": min(times),
        "max_ms": max(times),
        "quartile_1_ms": quartiles[0],
        "quartile_3_ms": quartiles[2],
        "runs": len(times),
        "kernels": kernels,
        "device": device,
    }


def input_types(plan: Plan) -> dict[str, TensorType]:
    """The types that a plan's inputs have in the model."""
    return {name: plan.tensors[name].type for name in plan.inputs}


__all__ = [
    "BoundsError",
    "BuildError",
    "DeviceError",
    "Executor",
    "RunError",
    "UnendedLoopError",
    "input_types",
    "summary",
]
