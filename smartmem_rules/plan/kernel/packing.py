"""Values of constants in the order of a layout."""

from __future__ import annotations

import numpy as np

from smartmem_rules.plan.kernel.model import Layout
from smartmem_rules.tensor.primitives import storage_dtype

LARGEST_HALF = 65504.0


def holds(storage: str, values: np.ndarray) -> bool:
    """Whether no finite value becomes infinite when it is stored."""
    return storage != "float16" or not np.any(np.isfinite(values) & (np.abs(values) > LARGEST_HALF))


def pack(values: np.ndarray, layout: Layout, storage: str) -> np.ndarray:
    """The elements in storage order: flat for a buffer, (height, width, 4) for an image."""
    dtype = np.dtype(np.uint8) if storage == "bool" else storage_dtype(storage)
    if layout.memory == "buffer":
        return np.ascontiguousarray(values.transpose(layout.order) if values.ndim else values).astype(dtype).reshape(-1)
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
