"""Memory in which the host and a device see the same elements, so that inputs and outputs need no copy commands.

Such memory is fine-grained SVM of OpenCL 2.0: the host may read and write it whenever no launch uses it, without
mapping it. Each command that a run does not enqueue saves the time in which a driver for CPUs wakes a thread: 20 us.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.feeds import Array

_ALIGNMENT = 128
"""Bytes: that of the widest type of OpenCL C, long16."""


@dataclass(frozen=True, kw_only=True)
class SharedMemory:
    """A piece of memory of the host and the device.

    Attributes:
        buffer: it, as a buffer for kernels.
        array: its bytes.
        allocation: what holds the memory; it may go only when no launch uses it any more.
    """

    buffer: Any
    array: Array
    allocation: Any


def shares_memory(device: Device) -> bool:
    """Whether the device computes in the host's memory, and the driver lets both use it by turns."""
    import pyopencl as cl

    if not device.host_memory or device.handle is None:
        return False
    try:
        capabilities = device.handle.svm_capabilities
    except cl.Error:  # before OpenCL 2.0
        return False
    return bool(capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)


def shared_memory(context: Any, size: int) -> SharedMemory:
    """Memory of so many bytes."""
    import pyopencl as cl

    flags = cl.mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
    allocation = cl.SVMAllocation(context, size, _ALIGNMENT, flags)
    buffer = allocation.as_buffer(context, flags=cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, size=size)
    return SharedMemory(buffer=buffer, array=np.frombuffer(allocation.buf, np.uint8), allocation=allocation)
