"""Memory of the host from which a device copies by itself, without a copy to where it can reach it before."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from smartmem_rules.runtime.feeds import Array


def pinned_array(context: Any, queue: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of the host's memory that a device with memory of its own reaches; its elements are not set."""
    import pyopencl as cl

    size = math.prod(shape) * dtype.itemsize
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR, size)
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
    array, _ = cl.enqueue_map_buffer(queue, buffer, flags, 0, shape, dtype)
    return np.asarray(array)


class PinnedArrays:
    """The arrays that were given to users, as long as these keep them."""

    def __init__(self) -> None:
        self._arrays: dict[int, weakref.ref[Array]] = {}

    def add(self, array: Array) -> None:
        """An array of `pinned_array`."""
        self._arrays = {begin: one for begin, one in self._arrays.items() if one() is not None}
        self._arrays[_begin(array)] = weakref.ref(array)

    def hold(self, array: Array) -> bool:
        """Whether a contiguous array is one of them, or the beginning of one."""
        if not self._arrays:
            return False
        known = self._arrays.get(_begin(array))
        whole = None if known is None else known()
        return whole is not None and array.nbytes <= whole.nbytes


def _begin(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
