"""The device memory of a plan: packed constants, buffers and images, and what intermediates share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.artefact import Place, Plan, Slot
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import ALIGNMENT, buffer_dtype, memory_shape, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.alike import Content, LikeConstants, content_of
from smartmem_rules.runtime.contexts.host_memory import available_bytes
from smartmem_rules.runtime.contexts.shared import SharedMemory, shared_memory, shares_memory
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.mapped_pages import forget_pages
from smartmem_rules.runtime.plan_file import SLACK
from smartmem_rules.tensor.ranges import largest

MemoryObject = Any
"""A buffer or an image of pyopencl, which has no types."""


class RunError(SmartmemError):
    """The device refused memory or a kernel; the message says which and what to do."""


@dataclass(frozen=True, kw_only=True)
class RunMemory:
    """The memory of runs that follow one another.

    Attributes:
        tensors: the memory object of each tensor of the plan, by name; intermediates may share them.
        slots: the pieces that intermediates share.
        pieces: the memory object of each of them.
        shared: the inputs and outputs that the host reads and writes where the device does.
    """

    tensors: dict[str, MemoryObject]
    slots: list[Slot]
    pieces: list[Any]
    shared: dict[str, SharedMemory]


class PlanMemory:
    """Allocates the memory objects of a plan's tensors: what all runs share once, what a run writes for each context.

    Attributes:
        shared: the constants that no kernel writes, by name, filled.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        context: Any,
        queue: Any,
        alike: LikeConstants | None = None,
        outside: Collection[str] = (),
    ) -> None:
        """Allocate and fill what all runs share.

        Args:
            alike: the constants of other plans in the same context, which stand for those that are equal.
            outside: inputs and outputs whose memory whoever runs the plan has (`ExecutionContext.bind`).

        Raises:
            RunError: the device has too little memory, or its images are too small.
        """
        self.plan = plan
        self.device = device
        self.outside = frozenset(outside)
        self._context = context
        written = {a.tensor for source in plan.sources for a in source.arguments if a.access == "write"}
        constants = [t for t in plan.tensors.values() if t.role == "constant"]
        self._shared = {t.name for t in constants if t.name not in written}
        held = [t for t in constants if t.name in self._shared]
        self.shared: dict[str, Any] = {}
        contents = {} if alike is None else self._take_over(held, alike)
        new = [t for t in held if t.name not in self.shared]
        self._need([stored_bytes(t) for t in new if not self._is_mapped(t)])
        with self._reports_lack():
            self.shared |= {t.name: self._own(t, queue) for t in new}
            queue.finish()
        if alike is not None:
            alike.update((content, self.shared[name]) for name, content in contents.items())

    def _take_over(self, constants: Sequence[Stored], alike: LikeConstants) -> dict[str, Content]:
        """Share the memory of equal constants; what is in all of them, by name."""
        contents: dict[str, Content] = {}
        for tensor in constants:
            content = content_of(tensor)
            if content is None or tensor.packed is None:
                continue
            contents[tensor.name] = content
            if content in alike:
                self.shared[tensor.name] = alike[content]
                forget_pages(tensor.packed)
        return contents

    def for_runs(self, queue: Any) -> RunMemory:
        """The memory of one execution context: inputs, outputs, intermediates, and constants that kernels write.

        Raises:
            RunError: the device has too little memory, or its images are too small.
        """
        elsewhere = self._shared | self.outside | self.plan.placement.keys()
        own = [t for t in self.plan.tensors.values() if t.name not in elsewhere]
        slots, placement = self._pieces()
        self._need([slot.bytes for slot in slots] + [stored_bytes(t) for t in own])
        with self._reports_lack():
            pieces = [self._slot(slot) for slot in slots]
            parted = {place.slot for place in placement.values() if place.offset}
            tensors = dict(self.shared)
            shared = {tensor.name: self._with_host(tensor) for tensor in own if self._is_moved(tensor)}
            tensors |= {name: memory.buffer for name, memory in shared.items()}
            for tensor in self.plan.tensors.values():
                if tensor.name in placement:
                    place = placement[tensor.name]
                    memory = pieces[place.slot]
                    if place.slot in parted:
                        memory = self._part(memory, place.offset, tensor)
                    tensors[tensor.name] = memory
                elif tensor.name not in elsewhere and tensor.name not in shared:
                    tensors[tensor.name] = self._own(tensor, queue)
            queue.finish()
        return RunMemory(tensors=tensors, slots=slots, pieces=pieces, shared=shared)

    def _is_moved(self, tensor: Stored) -> bool:
        """Whether runs move a tensor between the host and a device that could use it where it is."""
        moved = tensor.name in self.plan.inputs or tensor.name in self.plan.outputs
        return moved and tensor.role != "constant" and tensor.layout.memory == "buffer" and shares_memory(self.device)

    def _with_host(self, tensor: Stored) -> SharedMemory:
        return shared_memory(self._context, stored_bytes(tensor) + SLACK)

    def _pieces(self) -> tuple[list[Slot], Mapping[str, Place]]:
        """The pieces of memory that intermediates share, and where each lies; none in parts where the driver fails."""
        if not self.device.workaround("whole_buffers"):
            return self.plan.slots, self.plan.placement
        number: dict[Place, int] = {}
        slots: list[Slot] = []
        for name, place in self.plan.placement.items():
            slot, size = self.plan.slots[place.slot], stored_bytes(self.plan.tensors[name])
            at = number.setdefault(place, len(slots))
            if at == len(slots):
                slots.append(slot if slot.memory == "image" else replace(slot, bytes=size))
            elif slot.memory == "buffer":
                slots[at] = replace(slot, bytes=max(size, slots[at].bytes))
        return slots, {name: Place(number[place], 0) for name, place in self.plan.placement.items()}

    def _need(self, sizes: list[int]) -> None:
        """Refuse sizes in bytes that the device cannot allocate: one of them, or all in the host's memory."""
        largest_piece = max(sizes, default=0)
        if largest_piece + SLACK > self.device.largest_allocation:
            raise RunError(
                f"{self.device.name} allocates at most {self.device.largest_allocation} bytes at once; "
                f"a tensor needs {largest_piece}"
            )
        free = available_bytes() if self.device.host_memory else None
        if free is not None and sum(sizes) > free:
            raise RunError(
                f"{self.device.name} has too little memory for this plan ({device_bytes(self.plan) / 2**20:.0f} MiB "
                f"needed): this process may take {max(0, free) / 2**20:.0f} MiB more"
            )

    @contextmanager
    def _reports_lack(self) -> Iterator[None]:
        import pyopencl as cl

        try:
            yield
        except (cl.MemoryError, MemoryError) as error:
            needed = device_bytes(self.plan) / 2**20
            raise RunError(
                f"{self.device.name} has too little memory for this plan ({needed:.0f} MiB needed): {_reason(error)}"
            ) from error

    def _own(self, tensor: Stored, queue: Any) -> Any:
        """Memory for one tensor alone; if the tensor is a constant, with its values."""
        mapped = self._mapped(tensor) if tensor.name in self._shared else None
        if mapped is not None:
            return mapped
        if tensor.layout.memory == "image":
            width, height = tensor.layout.image_size(tensor.type.shape)
            memory = self._image((largest(width), largest(height)), tensor.storage)
        else:
            memory = self._buffer(stored_bytes(tensor))
        if tensor.role == "constant":
            self._fill(tensor, memory, queue)
        return memory

    def _mapped(self, tensor: Stored) -> Any:
        """A constant of a mapped plan as the device's memory, where that is the host's; else None."""
        import pyopencl as cl

        if not self._is_mapped(tensor):
            return None
        assert tensor.packed is not None
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        return cl.Buffer(self._context, flags, hostbuf=tensor.packed.base)

    def _is_mapped(self, tensor: Stored) -> bool:
        """Whether the device can compute with a constant where it lies in the host's memory."""
        if not self.device.host_memory or tensor.packed is None or tensor.layout.memory != "buffer":
            return False
        reachable = tensor.packed.base
        return (
            isinstance(reachable, np.ndarray)
            and reachable.nbytes >= tensor.packed.nbytes + SLACK
            and reachable.ctypes.data == tensor.packed.ctypes.data
            and reachable.ctypes.data % max(ALIGNMENT, self.device.alignment) == 0
            and tensor.packed.nbytes == stored_bytes(tensor)
        )

    def _slot(self, slot: Slot) -> Any:
        return self._image(slot.size, slot.storage) if slot.memory == "image" else self._buffer(slot.bytes)

    def _part(self, memory: Any, offset: int, tensor: Stored) -> Any:
        """An intermediate's part of a piece of memory."""
        import pyopencl as cl

        alignment = max(ALIGNMENT, self.device.alignment)
        if offset % alignment:
            raise RunError(
                f"the tensor {tensor.name!r} lies {offset} bytes behind the beginning of a buffer, and "
                f"{self.device.name} takes multiples of {alignment}; optimize the model again on this device"
            )
        try:
            # vector loads reach past the end
            return memory.get_sub_region(offset, stored_bytes(tensor) + SLACK)
        except cl.Error as error:
            raise RunError(
                f"{self.device.name} gives no part of a buffer to the tensor {tensor.name!r}: {error}"
            ) from error

    def _buffer(self, size: int) -> Any:
        import pyopencl as cl

        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size + SLACK)

    def _image(self, size: tuple[int, int], storage: str) -> Any:
        import pyopencl as cl

        refuse_image(size, self.device)
        channel = cl.channel_type.HALF_FLOAT if storage == "float16" else cl.channel_type.FLOAT
        return cl.create_image(
            self._context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, channel), shape=size
        )

    def _fill(self, tensor: Stored, target: Any, queue: Any) -> None:
        import pyopencl as cl

        if tensor.packed is None:
            raise RunError(f"the plan holds no values for the constant {tensor.name!r}; optimize the model again")
        host = np.ascontiguousarray(tensor.packed)
        if host.dtype == np.bool_:
            host = host.view(np.uint8)
        if host.nbytes != stored_bytes(tensor):
            raise RunError(
                f"the constant {tensor.name!r} has {host.nbytes} bytes of values and {stored_bytes(tensor)} in memory"
            )
        if not host.nbytes:
            return
        if tensor.layout.memory == "image":
            region = tensor.layout.image_size(tensor.type.shape)
            cl.enqueue_copy(queue, target, host, origin=(0, 0), region=region, is_blocking=True)
        else:
            cl.enqueue_copy(queue, target, host, is_blocking=True)


def refuse_image(size: tuple[int, int], device: Device) -> None:
    """Refuse an image of texels that a device does not have.

    Raises:
        RunError: the device has no images, or smaller ones only.
    """
    if not device.images:
        raise RunError(f"{device.name} has no images; optimize with memory `buffer`")
    if size[0] > device.image_width or size[1] > device.image_height:
        raise RunError(
            f"an image of {size[0]} x {size[1]} texels is too large for {device.name} (at most "
            f"{device.image_width} x {device.image_height}); optimize the model again on this device"
        )


def contents_of(queue: Any, memory: Any, tensor: Stored) -> np.ndarray:
    """What lies in the memory object of a tensor of closed extents, in its order there, as `packing.pack` gives it."""
    import pyopencl as cl

    host = np.empty(memory_shape(tensor), buffer_dtype(tensor.storage))
    if not host.size:
        return host
    if tensor.layout.memory == "image":
        height, width, _ = host.shape
        cl.enqueue_copy(queue, host, memory, origin=(0, 0), region=(width, height), is_blocking=True)
    else:
        cl.enqueue_copy(queue, host, memory, is_blocking=True)
    return host


def device_bytes(plan: Plan) -> int:
    """The device memory, in bytes, that a plan needs for runs that follow one another."""
    placed = sum(slot.bytes for slot in plan.slots)
    return placed + sum(stored_bytes(t) for t in plan.tensors.values() if t.name not in plan.placement)


def context_bytes(plan: Plan) -> int:
    """The device memory, in bytes, that each further execution context of a plan needs: all but the constants."""
    return device_bytes(plan) - sum(stored_bytes(t) for t in plan.tensors.values() if t.role == "constant")


def _reason(error: BaseException) -> str:
    """What the driver or Python says, without pyopencl's hint."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
