"""The buffers of which the memory of keys and values consists: as the model has them, or rounded to 8 bits.

Rounded, a row of channels is integers from -127 to 127 with a scale, a float for each position, sequence and head. What
is read is off by at most half a scale: 1/254 of the largest magnitude of the row.
"""

from __future__ import annotations

import math

from onnx import TensorProto, helper

from smartmem_rules.decoding.model.interface import CachedTensor
from smartmem_rules.records import dataclass

OWN, ROUNDED = "model", "int8"
"""The types that a cache may have: the model's own, or integers with scales."""
TYPES = (OWN, ROUNDED)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A buffer of the cache, positions and sequences first.

    Attributes:
        input, output: of the graphs of steps, which read and give it.
        shape: of a position of a sequence: heads and channels.
        dtype: ONNX's number of the element type.
    """

    input: str
    output: str
    shape: tuple[int, ...]
    dtype: int

    def row_bytes(self, sequences: int) -> int:
        """The bytes of a position for all sequences."""
        return int(sequences * math.prod(self.shape) * helper.tensor_dtype_to_np_dtype(self.dtype).itemsize)


def parts_of(tensor: CachedTensor, kind: str) -> tuple[Part, ...]:
    """The buffers of a cached tensor: its elements, and where they are rounded the scales of their rows."""
    own = tuple(extent for axis, extent in enumerate(tensor.shape) if axis not in (0, tensor.axis))
    names = f"decoding.{tensor.past}", f"decoding.{tensor.present}"
    if kind == OWN:
        return (Part(input=names[0], output=names[1], shape=own, dtype=tensor.dtype),)
    scales = (f"{name}.scale" for name in names)
    return (
        Part(input=names[0], output=names[1], shape=own, dtype=TensorProto.INT8),
        Part(input=next(scales), output=next(scales), shape=(*own[:-1], 1), dtype=TensorProto.FLOAT),
    )
