"""The device memory of a plan: packed constants, buffers and images, and what intermediates share."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.plan.memory import stored_bytes
from smartmem_rules.plan.model import Plan, Slot, Stored
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.plan_file import SLACK
from smartmem_rules.tensor.ranges import largest


class RunError(Exception):
    """The device refused memory or a kernel; the message says which and what to do."""


class PlanMemory:
    """The memory object of every tensor of a plan, allocated and, for constants, filled.

    Attributes:
        tensors: by name; intermediates may share them.
        slots: the pieces that intermediates share, in the plan's order.
    """

    def __init__(self, plan: Plan, device: Device, context: Any, queue: Any) -> None:
        """Allocate everything.

        Raises:
            RunError: the device has too little memory, or its images are too small.
        """
        import pyopencl as cl

        self.plan = plan
        self.device = device
        self.tensors: dict[str, Any] = {}
        self._context = context
        self._queue = queue
        self._written = {a.tensor for source in plan.sources for a in source.arguments if a.access == "write"}
        try:
            self._allocate()
        except (cl.MemoryError, MemoryError) as error:
            needed = device_bytes(plan) / 2**20
            raise RunError(f"{device.name} has too little memory for this plan ({needed:.0f} MiB needed)") from error

    def _allocate(self) -> None:
        slots = self.slots = [self._slot(slot) for slot in self.plan.slots]
        parted = {place.slot for place in self.plan.placement.values() if place.offset}
        for tensor in self.plan.tensors.values():
            if tensor.name in self.plan.placement:
                place = self.plan.placement[tensor.name]
                memory = slots[place.slot]
                if place.slot in parted:
                    memory = self._part(memory, place.offset, tensor)
                self.tensors[tensor.name] = memory
            elif (shared := self._shared(tensor)) is not None:
                self.tensors[tensor.name] = shared
                continue
            elif tensor.layout.memory == "image":
                width, height = tensor.layout.image_size(tensor.type.shape)
                self.tensors[tensor.name] = self._image((largest(width), largest(height)), tensor.storage)
            else:
                self.tensors[tensor.name] = self._buffer(stored_bytes(tensor))
            if tensor.role == "constant":
                self._fill(tensor)
        self._queue.finish()

    def _shared(self, tensor: Stored) -> Any:
        """A constant of a mapped plan as the device's memory, where that is the host's; else None."""
        import pyopencl as cl

        if not self.device.host_memory or tensor.packed is None or tensor.layout.memory != "buffer":
            return None
        if tensor.name in self._written:
            return None
        reachable = tensor.packed.base
        if not isinstance(reachable, np.ndarray) or reachable.nbytes < tensor.packed.nbytes + SLACK:
            return None
        if reachable.ctypes.data != tensor.packed.ctypes.data or tensor.packed.nbytes != stored_bytes(tensor):
            return None
        return cl.Buffer(self._context, cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR, hostbuf=reachable)

    def _slot(self, slot: Slot) -> Any:
        return self._image(slot.size, slot.storage) if slot.memory == "image" else self._buffer(slot.bytes)

    def _part(self, memory: Any, offset: int, tensor: Stored) -> Any:
        """An intermediate's part of a piece of memory."""
        import pyopencl as cl

        if offset % self.device.alignment:
            raise RunError(
                f"the tensor {tensor.name!r} lies {offset} bytes behind the beginning of a buffer, and "
                f"{self.device.name} takes multiples of {self.device.alignment}; "
                "optimize the model again on this device"
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

        if size + SLACK > self.device.largest_allocation:
            raise RunError(
                f"{self.device.name} allocates at most {self.device.largest_allocation} bytes at once; "
                f"a tensor needs {size}"
            )
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size + SLACK)

    def _image(self, size: tuple[int, int], storage: str) -> Any:
        import pyopencl as cl

        if not self.device.images:
            raise RunError(f"{self.device.name} has no images; optimize with memory `buffer`")
        if size[0] > self.device.image_width or size[1] > self.device.image_height:
            raise RunError(
                f"an image of {size[0]} x {size[1]} texels is too large for {self.device.name} (at most "
                f"{self.device.image_width} x {self.device.image_height}); optimize the model again on this device"
            )
        channel = cl.channel_type.HALF_FLOAT if storage == "float16" else cl.channel_type.FLOAT
        return cl.create_image(
            self._context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, channel), shape=size
        )

    def _fill(self, tensor: Stored) -> None:
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
        target = self.tensors[tensor.name]
        if tensor.layout.memory == "image":
            region = tensor.layout.image_size(tensor.type.shape)
            cl.enqueue_copy(self._queue, target, host, origin=(0, 0), region=region, is_blocking=True)
        else:
            cl.enqueue_copy(self._queue, target, host, is_blocking=True)


def device_bytes(plan: Plan) -> int:
    """The device memory that a plan needs."""
    placed = sum(slot.bytes for slot in plan.slots)
    return placed + sum(stored_bytes(t) for t in plan.tensors.values() if t.name not in plan.placement)
