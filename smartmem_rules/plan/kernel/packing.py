"""Values of constants in the order of a layout."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np

from smartmem_rules.plan.kernel.model import Layout
from smartmem_rules.plan.kernel.storage import SLACK
from smartmem_rules.tensor.primitives import storage_dtype

LARGEST_HALF = 65504.0
_IN_PLACE_FROM = 1 << 16
_LARGE_PAGES_FROM = 1 << 22


def holds(storage: str, values: np.ndarray) -> bool:
    """Whether no finite value becomes infinite when it is stored."""
    return storage != "float16" or not np.any(np.isfinite(values) & (np.abs(values) > LARGEST_HALF))


def room(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """An array for a constant in a buffer; a large one lies so that devices in the host's memory use it in place.

    Its memory, zeros at first, begins with a page and goes on for `SLACK` bytes behind its end.
    """
    size = elements * dtype.itemsize
    if size < _IN_PLACE_FROM:
        return np.empty(elements, dtype)
    memory = mmap.mmap(-1, size + SLACK)
    if size >= _LARGE_PAGES_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of a system that has none
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8, size + SLACK)[:size].view(dtype)


def pack(values: np.ndarray, layout: Layout, storage: str) -> np.ndarray:
    """The elements in storage order: flat for a buffer (see `room`), (height, width, 4) for an image."""
    dtype = np.dtype(np.uint8) if storage == "bool" else storage_dtype(storage)
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
