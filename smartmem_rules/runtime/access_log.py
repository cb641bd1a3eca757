"""What the kernels of a debug build write down: accesses outside of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes

RECORD = 9
"""Integers of a tensor in a launch's log: how many accesses were outside; of the first of them whether it writes, its
first byte in two halves or the texel's x and y, the bytes, whether it is of an image, and the work-item's numbers."""


def complaints(log: np.ndarray[Any, Any], kernel: str, tensors: Sequence[Stored]) -> list[str]:
    """What a launch's log says, a line for each tensor of which something outside was accessed.

    Args:
        tensors: those that the kernel takes, in order.
    """
    records = log.reshape(-1, RECORD)
    return [_complaint(record.tolist(), kernel, t) for record, t in zip(records, tensors, strict=True) if record[0]]


def _complaint(record: list[int], kernel: str, tensor: Stored) -> str:
    count, writes, low, high, size, image, *item = record
    shape = f"[{', '.join(map(str, tensor.type.shape))}]"
    if image:
        width, height = tensor.layout.image_size(tensor.type.shape)
        where = f"texel ({low}, {high}), and it has {width} x {height} texels"
    else:
        first = (high << 32) | (low & 0xFFFFFFFF)
        where = f"{size} bytes from byte {first} on, and it has {stored_bytes(tensor)} bytes"
    more = f"; {count - 1} more accesses are outside" if count > 1 else ""
    return (
        f"the kernel {kernel} {'writes' if writes else 'reads'} outside the tensor {tensor.name!r} "
        f"({tensor.layout} of {shape}, {tensor.storage}): {where}; work-item ({', '.join(map(str, item))}){more}"
    )
