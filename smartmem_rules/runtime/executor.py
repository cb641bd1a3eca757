"""Runs a plan on an OpenCL device: one in-order queue, every kernel's arguments set once, only outputs copied back."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartmem_rules.plan.model import Plan, Source, Stored
from smartmem_rules.runtime.access_log import RECORD, complaints
from smartmem_rules.runtime.compiling import BuildError, Programs
from smartmem_rules.runtime.devices import Device, DeviceError
from smartmem_rules.runtime.feeds import Array, check_feeds, extents_of, random_feeds, shape_at
from smartmem_rules.runtime.plan_file import SLACK
from smartmem_rules.runtime.plan_memory import PlanMemory, RunError, device_bytes
from smartmem_rules.tensor.extents import at
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import TensorType


class BoundsError(RunError):
    """A kernel of a debug build read or wrote outside a tensor; the message says which, where, and which work-item."""


@dataclass(frozen=True)
class _Launch:
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    name: str
    source: Source
    log: Any = None

    def at(self, values: Mapping[str, int]) -> _Launch:
        """The launch for extents of the dimensions, which become the kernel's last arguments."""
        count = len(self.source.arguments)
        for place, name in enumerate(self.source.dimensions):
            self.kernel.set_arg(count + place, np.int32(values[name]))
        size = tuple(int(at(extent, values)) for extent in self.source.global_size)
        return replace(self, global_size=size)


class Executor:
    """A plan that is ready to run: built kernels, packed constants on the device, memory for everything else.

    Not for use by several threads at once: the memory of intermediates is shared by all runs.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        progress: Callable[[int, int], None] | None = None,
        debug: bool = False,
    ) -> None:
        """Build the kernels and fill the device's memory.

        Args:
            debug: the kernels check each read and write of device memory, and runs raise `BoundsError`.
            progress: called with the numbers of distinct kernel texts built and to build.

        Raises:
            BuildError: the OpenCL compiler refuses a kernel.
            RunError: the device has too little memory, its images are too small, or it is not one for which work-groups
                may wait for each other.
        """
        import pyopencl as cl

        if any(kernel.form == "ordered" for kernel in plan.kernels) and not device.runs_ordered:
            raise RunError(
                f"the plan has launches whose work-groups wait for each other, which {device.name} is not known to run; "
                "optimize the model again on this device"
            )
        self.plan = plan
        self.device = device
        self.input_types = input_types(plan)
        self._context = cl.Context([device.handle])
        self._queue = cl.CommandQueue(self._context, device.handle)
        names = [kernel.name for kernel in plan.kernels]
        sources = _checked(plan) if debug else plan.sources
        programs = Programs(self._context, device, sources, names, progress)
        self.programs = programs.count
        memory = PlanMemory(plan, device, self._context, self._queue)
        self._memory, self._slots = memory.tensors, memory.slots
        self._launches = [
            self._launch(programs, kernel.name, source, debug)
            for kernel, source in zip(plan.kernels, sources, strict=True)
        ]
        self._made = self._launches
        self._values: dict[str, int] = {}
        self._set_extents({})

    @property
    def device_bytes(self) -> int:
        """The device memory that the plan needs."""
        return device_bytes(self.plan)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """One inference.

        Args:
            feeds: an array for every input, of the model's shape and element type.

        Returns:
            new arrays of the model's element types, by output.

        Raises:
            GraphError: an input is missing, unknown, or of a wrong shape or element type.
        """
        arrays = check_feeds(self.input_types, feeds)
        values = extents_of(self.input_types, arrays)
        if values != self._values:
            self._set_extents(values)
        self._upload(arrays)
        self._enqueue(self._queue)
        self._complain()
        return self._download()

    def benchmark(self, runs: int = 10, warmup: int = 2, feeds: Mapping[str, Any] | None = None) -> dict[str, Any]:
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
        return summary(times, len(self.plan.kernels), self.device.name)

    def timed_run(self, feeds: Mapping[str, Any]) -> float:
        """The milliseconds of one inference."""
        start = time.perf_counter()
        self.run(feeds)
        return (time.perf_counter() - start) * 1e3

    def profile(self, feeds: Mapping[str, Any] | None = None) -> list[tuple[str, float]]:
        """Every kernel's name and milliseconds on the device, in the order of execution."""
        import pyopencl as cl

        self.run(random_feeds(self.input_types) if feeds is None else feeds)
        queue = cl.CommandQueue(
            self._context, self.device.handle, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        events = self._enqueue(queue)
        queue.finish()
        return [
            (launch.name, (event.profile.end - event.profile.start) * 1e-6)
            for launch, event in zip(self._launches, events, strict=True)
        ]

    def fetch(self, tensor: str) -> Array:
        """What lies in the memory of a row-major buffer tensor after the last run: for debugging kernels."""
        import pyopencl as cl

        stored = self._tensor(tensor)
        host = np.empty(shape_at(stored.type.shape, self._values), buffer_dtype(stored.storage))
        if host.size:
            cl.enqueue_copy(self._queue, host, self._memory[tensor], is_blocking=True)
        return host

    def poison(self) -> None:
        """Fill the memory of all intermediates with NaN, which a kernel that reads what none wrote hands on."""
        import pyopencl as cl

        for slot, memory in zip(self.plan.slots, self._slots, strict=True):
            if slot.memory == "image":
                color = np.full(4, np.nan, np.float32)
                cl.enqueue_fill_image(self._queue, memory, color, (0, 0, 0), (*slot.size, 1))
            else:
                cl.enqueue_fill_buffer(self._queue, memory, np.array([0xFF], np.uint8), 0, slot.bytes + SLACK)
        self._queue.finish()

    def magnitudes(self, feeds: Mapping[str, Any]) -> dict[str, float]:
        """The largest magnitude in each buffer of float32 that a kernel writes, looked at after every kernel."""
        arrays = check_feeds(self.input_types, feeds)
        self._set_extents(extents_of(self.input_types, arrays))
        self._upload(arrays)
        kernels = {kernel.name: kernel for kernel in self.plan.kernels}
        found: dict[str, float] = {}
        for launch in self._launches:
            self._enqueue(self._queue, (launch,))
            for name in kernels[launch.name].writes:
                stored = self.plan.tensors.get(name)
                if stored is not None and stored.layout.memory == "buffer" and stored.storage == "float32":
                    found[name] = float(np.abs(self.fetch(name)).max(initial=0.0))
        return found

    def _set_extents(self, values: dict[str, int]) -> None:
        """Take the extents of the open dimensions, if there are any, for the runs that follow."""
        if len(values) < len(self.plan.dimensions):
            return  # the first inputs will tell
        self._values = values
        self._launches = [launch for launch in (made.at(values) for made in self._made) if all(launch.global_size)]
        # int64 and half outputs are converted into these on every run
        self._staging = {name: self._host_array(name) for name in self.plan.outputs}
        # a device with memory of its own copies at full speed, and beside the host's work, from pinned memory only
        pinned = () if self.device.host_memory else self.plan.inputs
        self._feeding = {name: self._host_array(name) for name in pinned}

    def _tensor(self, name: str) -> Stored:
        return self.plan.tensors[name]

    def _host_dtype(self, name: str) -> np.dtype[Any]:
        return buffer_dtype(self._tensor(name).storage)

    def _host_array(self, name: str) -> Array:
        """Memory of the host for a tensor, pinned where the device has memory of its own."""
        import pyopencl as cl

        shape, dtype = shape_at(self._tensor(name).type.shape, self._values), self._host_dtype(name)
        size = math.prod(shape) * dtype.itemsize
        if self.device.host_memory or not size:
            return np.empty(shape, dtype)
        buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, size)
        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
        array, _ = cl.enqueue_map_buffer(self._queue, buffer, flags, 0, shape, dtype)
        return np.asarray(array)

    def _launch(self, programs: Programs, name: str, source: Source, debug: bool) -> _Launch:
        import pyopencl as cl

        kernel = programs.kernel(source)
        log = None
        if debug:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            log = cl.Buffer(self._context, flags, hostbuf=np.zeros(RECORD * len(source.arguments), np.int32))
        try:
            lowest = (np.int32(1) for _ in source.dimensions)  # until the inputs tell
            memory = (self._memory[argument.tensor] for argument in source.arguments)
            kernel.set_args(*memory, *lowest, *(() if log is None else (log,)))
        except (cl.Error, TypeError) as error:
            tensors = ", ".join(argument.tensor for argument in source.arguments)
            raise RunError(f"the kernel {name} does not take its arguments ({tensors}): {error}") from error
        return _Launch(kernel, source.global_size, source.local_size, name, source, log)

    def _upload(self, arrays: Mapping[str, Array]) -> None:
        import pyopencl as cl

        for name, array in arrays.items():
            if not array.size:
                continue
            pinned = self._feeding.get(name)
            if pinned is None:
                host = np.ascontiguousarray(array).astype(self._host_dtype(name), copy=False)
                cl.enqueue_copy(self._queue, self._memory[name], host, is_blocking=True)
            else:
                np.copyto(pinned, array, casting="unsafe")
                cl.enqueue_copy(self._queue, self._memory[name], pinned, is_blocking=False)

    def _enqueue(self, queue: Any, launches: Sequence[_Launch] | None = None) -> list[Any]:
        import pyopencl as cl

        events = []
        for launch in self._launches if launches is None else launches:
            try:
                events.append(cl.enqueue_nd_range_kernel(queue, launch.kernel, launch.global_size, launch.local_size))
            except cl.Error as error:
                raise RunError(
                    f"{self.device.name} refuses the kernel {launch.name} with global size {launch.global_size} and "
                    f"local size {launch.local_size}: {error}"
                ) from error
        return events

    def _complain(self) -> None:
        """Raise what the kernels of a debug build have noted since this was asked last."""
        import pyopencl as cl

        found: list[str] = []
        for launch in self._launches:
            if launch.log is None:
                continue
            tensors = [self._tensor(argument.tensor) for argument in launch.source.arguments]
            log = np.empty(RECORD * len(tensors), np.int32)
            cl.enqueue_copy(self._queue, log, launch.log, is_blocking=True)
            found += complaints(log, launch.name, tensors)
            if log.any():
                cl.enqueue_fill_buffer(self._queue, launch.log, np.zeros(1, np.int32), 0, log.nbytes)
        if found:
            raise BoundsError("\n".join(found))

    def _download(self) -> dict[str, Array]:
        import pyopencl as cl

        for name, host in self._staging.items():
            if host.size:
                cl.enqueue_copy(self._queue, host, self._memory[name], is_blocking=False)
        self._queue.finish()
        results = {name: self._shown(self._tensor(name), host) for name, host in self._staging.items()}
        names = {count for axes in self.plan.sizes.values() for count in axes.values()}
        counts = {name: int(results.pop(name)) for name in names}
        for name, axes in self.plan.sizes.items():
            for axis, count in axes.items():
                results[name] = results[name].take(range(counts[count]), axis)
        return results

    def _shown(self, stored: Stored, host: Array) -> Array:
        """A copy of an output as the model gives it."""
        array = host.astype(storage_dtype(stored.type.dtype))
        return array if stored.shown is None else array.reshape(shape_at(stored.shown, self._values))


def _checked(plan: Plan) -> list[Source]:
    """The sources of a debug build."""
    from smartmem_rules.runtime.checks import UncheckedError, checked

    found = []
    for kernel, source in zip(plan.kernels, plan.sources, strict=True):
        try:
            found.append(checked(source, plan.tensors))
        except UncheckedError as error:
            raise RunError(f"there is no debug build of the kernel {kernel.name}: {error}") from error
    return found


def summary(times: list[float], kernels: int | None, device: str) -> dict[str, Any]:
    """Milliseconds of runs as the table that every benchmark gives."""
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


def buffer_dtype(storage: str) -> np.dtype[Any]:
    """The numpy dtype of a buffer's elements: truth values are bytes."""
    return np.dtype(np.uint8) if storage == "bool" else storage_dtype(storage)


__all__ = ["BuildError", "DeviceError", "Executor", "RunError", "buffer_dtype", "input_types", "summary"]
