"""The elements of tensors in the order of a layout, and back."""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any

import numpy as np

from smartmem_rules.plan.kernel.model import Layout
from smartmem_rules.plan.kernel.storage import SLACK, buffer_dtype

LARGEST_HALF = 65504.0
_LARGEST = {"float16": LARGEST_HALF, "bfloat16": 3.3895313892515355e38}
_IN_PLACE_FROM = 1 << 16
_LARGE_PAGES_FROM = 1 << 22


def limits(storage: str) -> bool:
    """Whether a finite value may become infinite when it is stored."""
    return storage in _LARGEST


def holds(storage: str, values: np.ndarray) -> bool:
    """Whether no finite value becomes infinite when it is stored."""
    largest = _LARGEST.get(storage)
    return largest is None or not np.any(np.isfinite(values) & (np.abs(values) > largest))


def room(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """An array for a constant in a buffer; a large one lies so that devices in the host's memory use it in place.

    Its memory, zeros at first, begins with a page and goes on for `SLACK` bytes behind its end.
    """
    size = elements * dtype.itemsize
    if size < _IN_PLACE_FROM:
        return np.empty(elements, dtype)
    memory = _pages(size + SLACK)
    if size >= _LARGE_PAGES_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of a system that has none
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8, size + SLACK)[:size].view(dtype)


def _pages(size: int) -> mmap.mmap:
    """Memory of zeros; private to the process, because systems seldom give shared memory large pages."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)


def pack(values: np.ndarray, layout: Layout, storage: str) -> np.ndarray:
    """The elements in storage order: flat for a buffer (see `room`), (height, width, 4) for an image."""
    dtype = buffer_dtype(storage)
    if layout.memory == "buffer":
        ordered = values.transpose(layout.order) if values.ndim else values
        made = room(ordered.size, dtype)
        made.reshape(ordered.shape)[...] = ordered
        return made
    width, height = layout.image_size(values.shape)
    if layout.order and layout.lane_axis is None:
        texels = np.zeros((values.size, 4), dtype)
        texels[:, 0] = values.transpose(layout.order[:-1]).reshape(-1)
        return texels.reshape(height, width, 4)
    ordered = values.transpose(layout.order) if values.ndim else values.reshape(1)
    rest = -ordered.shape[-1] % 4
    padded = np.pad(ordered, [(0, 0)] * (ordered.ndim - 1) + [(0, rest)])
    texels = padded.reshape(*padded.shape[:-1], padded.shape[-1] // 4, 4)
    placed = np.moveaxis(texels, -2, -2 - layout.inner)
    return np.ascontiguousarray(placed).astype(dtype).reshape(height, width, 4)


def unpacked(packed: np.ndarray, layout: Layout, shape: tuple[int, ...]) -> np.ndarray:
    """The elements of a tensor from memory in its layout: what `pack` undoes."""
    places = element_numbers(layout, shape)
    made = np.zeros(math.prod(shape), packed.dtype)
    inside = places >= 0
    made[places[inside]] = packed.reshape(-1)[inside]
    return made.reshape(shape)


def element_numbers(layout: Layout, shape: tuple[int, ...]) -> np.ndarray:
    """For each place of a tensor's memory the number of its element in order of rows, -1 where none lies there."""
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.int64).reshape(shape)
    return pack(numbers, layout, "int64").reshape(-1) - 1
