"""What one run of a plan needs for itself: a queue, kernel objects with their arguments, and memory that runs write.

A kernel object holds its arguments, and `clSetKernelArg` is not safe to call from several threads; intermediates lie in
memory that every run writes. So runs that happen at once have an execution context each, and share the built programs
and the constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any

import numpy as np

from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.kernel.storage import buffer_dtype, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.access_log import RECORD, complaints
from smartmem_rules.runtime.contexts.given_up import complain, copied, noted_outputs, with_notes
from smartmem_rules.runtime.contexts.memory import MemoryObject, PlanMemory, RunError, contents_of
from smartmem_rules.runtime.contexts.numbers import set_number
from smartmem_rules.runtime.contexts.outputs import as_told
from smartmem_rules.runtime.contexts.pinned import PinnedArrays, pinned_array
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.feeds import Array, shape_at
from smartmem_rules.runtime.plan_file import SLACK
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.tensor.extents import at, is_symbolic
from smartmem_rules.tensor.primitives import storage_dtype


class BoundsError(RunError):
    """A kernel of a debug build read or wrote outside a tensor; the message says which, where, and which work-item."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """What all execution contexts of a plan share.

    Attributes:
        context: the OpenCL context.
        sources: the texts of the kernels in the plan's order, with checks in a debug build.
        memory: holds the constants and allocates the rest.
        pinned: inputs that the user holds where the device copies them from.
    """

    plan: Plan
    device: Device
    context: Any
    programs: Programs
    sources: Sequence[Source]
    memory: PlanMemory
    debug: bool
    pinned: PinnedArrays = field(default_factory=PinnedArrays)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A kernel object with its arguments, and the sizes with which it is enqueued.

    Attributes:
        log: of a debug build, the buffer into which the kernel writes accesses outside of tensors.
    """

    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    name: str
    source: Source
    log: Any = None

    def at(self, values: Mapping[str, int]) -> Launch:
        """The launch for extents of the dimensions, which become the kernel's last arguments."""
        count = len(self.source.arguments)
        for place, name in enumerate(self.source.dimensions):
            set_number(self.kernel, count + place, values[name])
        if not any(map(is_symbolic, self.source.global_size)):
            return self
        size = tuple(int(at(extent, values)) for extent in self.source.global_size)
        return replace(self, global_size=size)


def _ready(launches: Sequence[Launch], values: Mapping[str, int]) -> list[Launch]:
    """The launches for extents of the dimensions, without those that have nothing to do."""
    return [launch for launch in (made.at(values) for made in launches) if all(launch.global_size)]


class ExecutionContext:
    """Runs of a plan that follow one another; for one thread at a time.

    Attributes:
        queue: in-order, so that each kernel finds what those before it wrote.
        launches: the kernels in the order of execution, at the extents of the last run.
    """

    def __init__(self, built: Built) -> None:
        """Allocate memory and set every kernel's arguments.

        Raises:
            RunError: the device has too little memory, or its images are too small.
        """
        import pyopencl as cl

        self.plan = built.plan
        self.device = built.device
        self._context = built.context
        self.queue = cl.CommandQueue(built.context, built.device.handle)
        self._outside = built.memory.outside
        self._pinned = built.pinned
        self._copying: list[Any] = []
        self._run_memory = built.memory.for_runs(self.queue)
        self._memory = self._run_memory.tensors
        self._shared = self._run_memory.shared
        self._made = self.launches = [
            self._launch(built, launch.name, source)
            for launch, source in zip(built.plan.launches, built.sources, strict=True)
        ]
        self._noted = noted_outputs(built.plan)
        self._tells = bool(built.plan.told or built.plan.sizes)
        self._copies: dict[str, Array] = {}
        self._values: dict[str, int] = {}
        self._given: dict[str, int] = {}
        self._staging: dict[str, Array] = {}  # int64 and half outputs are converted into these on every run
        self._feeding: dict[str, Array] = {}
        self.set_extents({}, anew=True)

    def run(self, arrays: Mapping[str, Array], values: dict[str, int]) -> dict[str, Array]:
        """One inference.

        Args:
            arrays: an array for every input, of the shape and element type of the model.
            values: the extents of the open dimensions.

        Raises:
            RunError: the device refuses a kernel.
            BoundsError: a kernel of a debug build read or wrote outside a tensor.
        """
        self.set_extents(values)
        self.upload(arrays)
        if self.plan.counted:
            self._take(self._counting(values))
        else:
            self.enqueue(self.queue)
        self.complain()
        return self.download()

    def set_extents(self, values: dict[str, int], anew: bool = False) -> None:
        """Take the extents of the open dimensions, if there are any, for the runs that follow."""
        if len(values) < len(self.plan.dimensions) or (values == self._given and not anew):
            return  # the first inputs will tell
        self._given = values
        self._values = {**dict.fromkeys((one.dimension.name for one in self.plan.counted), 0), **values}
        # a device with memory of its own copies at full speed, and beside the host's work, from pinned memory only
        fed = [name for name in self.plan.inputs if name in self._shared or not self.device.host_memory]
        self._feeding = self._host_arrays(fed, self._feeding)
        if not self.plan.counted:
            self._take(values)

    def _take(self, values: dict[str, int]) -> None:
        """Take the extents of all dimensions."""
        self._values = values
        self.launches = _ready(self._made, values)
        self._staging = self._host_arrays(self.plan.outputs, self._staging)

    def _counting(self, values: dict[str, int]) -> dict[str, int]:
        """Enqueue all launches, those that need an extent when it is counted; the extents of all dimensions.

        Raises:
            RunError: a kernel has counted more than there can be.
        """
        import pyopencl as cl

        known, done = dict(values), 0
        for end, ones in groupby(self.plan.counted, lambda one: one.launches):
            self.enqueue(self.queue, _ready(self._made[done:end], known))
            done = end
            *before, last = [(one, np.empty((), self._host_dtype(one.tensor))) for one in ones]
            for one, host in (*before, last):
                wait = host is last[1]  # the queue is in order: the others have come by then
                self._copying.append(cl.enqueue_copy(self.queue, host, self._memory[one.tensor], is_blocking=wait))
            for one, host in (*before, last):
                known[one.dimension.name] = int(host)
                if not one.dimension.low <= host <= one.dimension.high:
                    raise RunError(f"a kernel has counted {int(host)} elements for {one.dimension}")
        self.enqueue(self.queue, _ready(self._made[done:], known))
        return known

    def bind(self, memory: Mapping[str, MemoryObject]) -> None:
        """Give tensors that lie outside of the plan's own memory theirs, for the runs that follow.

        Args:
            memory: buffers in the plan's OpenCL context, row-major, with `SLACK` bytes behind the last element; None
                lets go of the one before.
        """
        new = {name: buffer for name, buffer in memory.items() if self._memory.get(name) is not buffer}
        self._memory.update(new)
        for launch in self._made if new else ():
            for place, argument in enumerate(launch.source.arguments):
                if argument.tensor in new:
                    launch.kernel.set_arg(place, new[argument.tensor])

    def upload(self, arrays: Mapping[str, Array]) -> None:
        """Copy inputs to the device.

        Arrays must not change until the queue has done what follows: those in pinned memory may still be under way.
        """
        import pyopencl as cl

        for name, array in arrays.items():
            if not array.size:
                continue
            pinned = self._feeding.get(name)
            if pinned is not None and name in self._shared:
                np.copyto(pinned, array, casting="unsafe")
                continue
            if pinned is None:
                host = np.ascontiguousarray(array).astype(self._host_dtype(name), copy=False)
                self._copying.append(cl.enqueue_copy(self.queue, self._memory[name], host, is_blocking=False))
                continue
            if array.dtype == pinned.dtype and self._pinned.hold(array):
                pinned = array
            else:
                np.copyto(pinned, array, casting="unsafe")
            # who lets go of the event of a copy waits for the copy
            self._copying.append(cl.enqueue_copy(self.queue, self._memory[name], pinned, is_blocking=False))

    def enqueue(self, queue: Any, launches: Sequence[Launch] | None = None) -> list[Any]:
        """Enqueue launches, by default all, and return their events.

        Raises:
            RunError: the device refuses one.
        """
        import pyopencl as cl

        events = []
        for launch in self.launches if launches is None else launches:
            try:
                events.append(cl.enqueue_nd_range_kernel(queue, launch.kernel, launch.global_size, launch.local_size))
            except cl.MemoryError as error:
                raise RunError(
                    f"{self.device.name} has too little memory to run the kernel {launch.name}: {error}"
                ) from error
            except cl.Error as error:
                raise RunError(
                    f"{self.device.name} refuses the kernel {launch.name} with global size {launch.global_size} and "
                    f"local size {launch.local_size}: {error}"
                ) from error
        return events

    def finish(self) -> None:
        """Wait until the device has done all that was enqueued."""
        self.queue.finish()
        self._copying.clear()

    def fetch(self, tensor: str) -> Array:
        """What lies in the memory of a row-major buffer tensor after the last run."""
        import pyopencl as cl

        stored = self.plan.tensors[tensor]
        host = np.empty(shape_at(stored.type.shape, self._values), buffer_dtype(stored.storage))
        if host.size:
            cl.enqueue_copy(self.queue, host, self._memory[tensor], is_blocking=True)
        return host

    def memory(self, tensor: str) -> Array:
        """What lies in the memory of a tensor of closed extents, in its order there, as `packing.pack` gives it."""
        return contents_of(self.queue, self._memory[tensor], self.plan.tensors[tensor])

    def poison(self) -> None:
        """Fill the memory of all intermediates with NaN."""
        import pyopencl as cl

        for slot, memory in zip(self._run_memory.slots, self._run_memory.pieces, strict=True):
            if slot.memory == "image":
                color = np.full(4, np.nan, np.float32)
                cl.enqueue_fill_image(self.queue, memory, color, (0, 0, 0), (*slot.size, 1))
            else:
                cl.enqueue_fill_buffer(self.queue, memory, np.array([0xFF], np.uint8), 0, slot.bytes + SLACK)
        self.queue.finish()

    def _host_dtype(self, name: str) -> np.dtype[Any]:
        return buffer_dtype(self.plan.tensors[name].storage)

    def _host_arrays(self, names: Sequence[str], before: Mapping[str, Array]) -> dict[str, Array]:
        """Memory of the host for tensors of the plan's own memory; what there is stays where no extent is open."""
        types = {name: self.plan.tensors[name].type for name in names if name not in self._outside}
        return {
            name: before[name] if name in before and not any(map(is_symbolic, type_.shape)) else self._host_array(name)
            for name, type_ in types.items()
        }

    def _host_array(self, name: str) -> Array:
        """Memory of the host for a tensor, pinned where the device has memory of its own."""

        shape, dtype = shape_at(self.plan.tensors[name].type.shape, self._values), self._host_dtype(name)
        size = math.prod(shape) * dtype.itemsize
        if name in self._shared:
            whole = self._shared[name].array
            if name in self._noted:
                self._copies[name] = whole[: with_notes(size)]
            return whole[:size].view(dtype).reshape(shape)
        if name in self._noted:
            copy = self._copies[name] = self._reachable((with_notes(size),), np.dtype(np.uint8))
            return copy[:size].view(dtype).reshape(shape)
        return self._reachable(shape, dtype) if size else np.empty(shape, dtype)

    def _reachable(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        if self.device.host_memory:
            return np.empty(shape, dtype)
        return pinned_array(self._context, self.queue, shape, dtype)

    def _launch(self, built: Built, name: str, source: Source) -> Launch:
        import pyopencl as cl

        kernel = built.programs.kernel(source)
        log = None
        if built.debug:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            log = cl.Buffer(self._context, flags, hostbuf=np.zeros(RECORD * len(source.arguments), np.int32))
        try:
            lowest = (np.int32(1) for _ in source.dimensions)  # until the inputs tell
            memory = (self._memory.get(argument.tensor) for argument in source.arguments)  # None until it is bound
            kernel.set_args(*memory, *lowest, *(() if log is None else (log,)))
        except (cl.Error, TypeError) as error:
            tensors = ", ".join(argument.tensor for argument in source.arguments)
            raise RunError(f"the kernel {name} does not take its arguments ({tensors}): {error}") from error
        return Launch(
            kernel=kernel,
            global_size=source.global_size,
            local_size=source.local_size,
            name=name,
            source=source,
            log=log,
        )

    def complain(self) -> None:
        """Raise what the kernels of a debug build have noted since this was asked last."""
        import pyopencl as cl

        found: list[str] = []
        for launch in self.launches:
            if launch.log is None:
                continue
            tensors = [self.plan.tensors[argument.tensor] for argument in launch.source.arguments]
            log = np.empty(RECORD * len(tensors), np.int32)
            cl.enqueue_copy(self.queue, log, launch.log, is_blocking=True)
            found += complaints(log, launch.name, tensors)
            if log.any():
                cl.enqueue_fill_buffer(self.queue, launch.log, np.zeros(1, np.int32), 0, log.nbytes)
        if found:
            raise BoundsError("\n".join(found))

    def download(self) -> dict[str, Array]:
        """New arrays of all outputs, once the queue has done everything before.

        Raises:
            RunError: a launch whose work-groups wait for each other has given up.
            UnendedLoopError: a loop has not ended for these inputs.
        """
        import pyopencl as cl

        # while the device computes: kernels have driven this code out of the caches by the time they end
        copies = [(host, np.empty(host.shape, self._model_dtype(name))) for name, host in self._staging.items()]
        results = {name: self._as_shown(name, made) for name, (_, made) in zip(self._staging, copies, strict=True)}
        read = [name for name, host in self._staging.items() if host.size and name not in self._shared]
        for name in read:
            # the last read waits for what was enqueued before; waiting after it took 10 us longer on an H100
            copied_to, last = self._copies.get(name, self._staging[name]), name == read[-1]
            self._copying.append(cl.enqueue_copy(self.queue, copied_to, self._memory[name], is_blocking=last))
        for name in self._noted & self._outside:
            self._copies[name] = copied(self.queue, self._memory[name], stored_bytes(self.plan.tensors[name]))
        if not read:
            self.queue.finish()
        for host, made in copies:
            np.copyto(made, host, casting="unsafe")
        self._copying.clear()
        if self._noted:
            complain((one.name for one in self._made), (one.source for one in self._made), self._copies)
        return as_told(self.plan, results) if self._tells else results

    def _model_dtype(self, name: str) -> np.dtype[Any]:
        return storage_dtype(self.plan.tensors[name].type.dtype)

    def _as_shown(self, name: str, array: Array) -> Array:
        """An output in the shape that the model gives it."""
        shown = self.plan.tensors[name].shown
        return array if shown is None else array.reshape(shape_at(shown, self._values))
