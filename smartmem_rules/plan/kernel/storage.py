"""How many bytes tensors take in device memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest

TEXEL_LANES = 4
HALVES = ("float16", "bfloat16")
"""Floats of 16 bits: a plan stores floats so, and computes in single precision."""
SLACK = 64
"""Bytes that may be read behind the end of a constant: vector loads reach over the last element."""
ALIGNMENT = 64
"""Bytes at multiples of which every tensor begins: kernels access up to 16 floats at once, as an aligned vector."""


def item_bytes(storage: str) -> int:
    """The size of an element in memory."""
    return int(storage_dtype(storage).itemsize)


def memory_shape(tensor: Stored) -> tuple[int, ...]:
    """The shape of a tensor's memory as `packing.pack` gives it: flat for a buffer, (height, width, 4) for an image."""
    if tensor.layout.memory != "image":
        return (tensor.type.elements,)
    width, height = tensor.layout.image_size(tensor.type.shape)
    return height, width, TEXEL_LANES


def buffer_dtype(storage: str) -> np.dtype[Any]:
    """The numpy dtype of a buffer's elements: truth values are bytes."""
    return np.dtype(np.uint8) if storage == "bool" else storage_dtype(storage)


def stored_bytes(tensor: Stored) -> int:
    """The bytes that a tensor takes at most, the lanes that an image leaves unused included."""
    if tensor.layout.memory == "image":
        return (
            largest(math.prod(tensor.layout.image_size(tensor.type.shape))) * TEXEL_LANES * item_bytes(tensor.storage)
        )
    return largest(tensor.type.elements) * item_bytes(tensor.storage)
