"""Factors of integer products: integers of 8 bits without their zero point, four of which fill a word of 32 bits."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Const, Expr, Select, free_variables

BYTES = ("int8", "uint8")
"""The types of their elements."""
PER_WORD = 4
"""Neighbouring steps of the reduction that lie in one word."""


@dataclass(frozen=True)
class ByteFactor:
    """A factor `elements - zero`.

    Attributes:
        elements: of type int8 or uint8.
        zero: int32, the same for all steps of the reduction.
    """

    elements: Expr
    zero: Expr

    @property
    def signed(self) -> bool:
        """Whether the elements have a sign."""
        return self.elements.dtype == "int8"


def byte_factor(factor: Expr, changing: Collection[Var]) -> ByteFactor | None:
    """The parts of a factor; None where it has another form.

    Args:
        changing: variables on which the zero point must not depend.
    """
    if factor.dtype != "int32":
        return None
    match factor:
        case Select(condition=condition, then=then, otherwise=Const(value=0)):
            inner = byte_factor(then, changing)
            outside = None if inner is None else _as_byte(inner)
            if inner is None or outside is None:
                return None
            return ByteFactor(Select(condition, inner.elements, outside, inner.elements.dtype), inner.zero)
        case Apply(function="sub", arguments=(values, zero)):
            elements = _elements(values)
        case _:
            elements, zero = _elements(factor), Const(0, "int32")
    if elements is None or not free_variables(zero).isdisjoint(changing):
        return None
    return ByteFactor(elements, zero)


def _elements(values: Expr) -> Expr | None:
    """What was converted from 8 bits, also where a condition chooses between two such values."""
    match values:
        case Apply(function="cast", arguments=(inner,)) if inner.dtype in BYTES:
            return inner
    return None


def _as_byte(factor: ByteFactor) -> Expr | None:
    """The zero point as an element, whose difference from the zero point is 0."""
    match factor.zero:
        case Const(value=value):
            low, high = (-128, 127) if factor.signed else (0, 255)
            return Const(value, factor.elements.dtype) if low <= value <= high else None
        case Apply(function="cast", arguments=(inner,)) if inner.dtype == factor.elements.dtype:
            return inner
    return None


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """Right factors as a register tile reads them, by batch, tile of columns, word of the reduction, column.

    Attributes:
        words: uint32[batch, tiles, words, columns]; the first step in the lowest bits, 0 behind the last.
        sums: int32[batch, tiles, columns], of a column's bytes without their zero point.
        zeros: int32 of the same shape, what is to be taken from each byte; None where that is 0 everywhere.
    """

    words: np.ndarray
    sums: np.ndarray
    zeros: np.ndarray | None


def packed_bytes(elements: np.ndarray, zero: np.ndarray, columns: int) -> Bytes:
    """Pack `elements - zero` as bytes with a sign.

    Args:
        elements: int8 or uint8 [batch, depth, columns].
        zero: whole numbers [batch, columns].
        columns: of a tile.
    """
    zero = zero.astype(np.int64)
    values = elements.astype(np.int16 if np.abs(zero).max(initial=0) < 2**14 else np.int64) - zero[:, None, :]
    if values.min(initial=0) >= -128 and values.max(initial=0) <= 127:
        zero = np.zeros_like(zero)
    elif elements.dtype == np.uint8:
        values, zero = elements.astype(np.int16) - 128, zero - 128
    else:
        values = elements
    batch, depth, width = values.shape
    tiles = -(-width // columns)
    padded = np.pad(values.astype(np.int8), ((0, 0), (0, -depth % PER_WORD), (0, tiles * columns - width)))
    quads = padded.reshape(batch, -1, PER_WORD, tiles, columns).transpose(0, 3, 1, 4, 2)
    sums = padded.sum(axis=1, dtype=np.int64)
    zeros = np.pad(zero, ((0, 0), (0, tiles * columns - width)))
    return Bytes(
        words=np.ascontiguousarray(quads).view(np.uint32)[..., 0],
        sums=(sums - depth * zeros).astype(np.int32).reshape(batch, tiles, columns),
        zeros=zeros.astype(np.int32).reshape(batch, tiles, columns) if zeros.any() else None,
    )
