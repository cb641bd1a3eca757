"""Element types and tensor types: all that running a plan needs to know of tensors."""

from __future__ import annotations

from smartmem_rules.records import unguarded

DTYPES = (
    "float16", "float32", "float64", "bfloat16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


NARROW_INTEGERS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""Integers of few bits: stored as bytes, computed in int."""
NARROW_FLOATS = (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
"""Floats of few bits: stored and computed as float32, rounded where something is cast to them."""
NARROW = (*NARROW_INTEGERS, *NARROW_FLOATS)
ALL_DTYPES = (*DTYPES, *NARROW)


def register_type(dtype: str) -> str:
    """The element type in which kernels compute with elements of a dtype, and hold them on chip."""
    if dtype in ("float16", "bfloat16") or dtype in NARROW_FLOATS:
        return "float32"
    if dtype in ("bool", "int8", "int16", "uint8", "uint16") or dtype in NARROW_INTEGERS:
        return "int32"
    return dtype


@unguarded(frozen=True)
class TensorType:
    """The element type (a name of `ALL_DTYPES`) and the extents of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(repr, self.shape))}]"
