"""Constants of several plans that are equal as they lie in memory: one memory object holds them for all."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Content:
    """What two constants have in common whose memory may be the same.

    Attributes:
        size: bytes of a buffer, width and height of an image in texels.
        digest: of the bytes as the plan holds them.
    """

    memory: str
    storage: str
    size: tuple[int, ...]
    digest: bytes


LikeConstants = dict[Content, Any]
"""The memory objects of constants by what is in them; of plans in one OpenCL context.

Weights that another plan packs differently (in panels of another width) have other bytes, and memory of their own.
"""


def content_of(tensor: Stored) -> Content | None:
    """What is in the memory of a constant; None where the plan does not hold its values."""
    if tensor.packed is None:
        return None
    packed = np.ascontiguousarray(tensor.packed)
    image = tensor.layout.memory == "image"
    size = tensor.layout.image_size(tensor.type.shape) if image else (packed.nbytes,)
    return Content(tensor.layout.memory, tensor.storage, size, hashlib.blake2b(packed.data, digest_size=16).digest())
