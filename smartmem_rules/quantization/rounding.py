"""Weights to integers with scales: the scale of each block is the one of a few whose rounding loses least."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.quantization.options import Code
from smartmem_rules.records import dataclass

Array = np.ndarray[Any, np.dtype[Any]]
TOGETHER = 2048
"""Columns that are rounded together: what is tried for them takes memory."""
SHRINKS = (1.0, 0.96, 0.92, 0.88, 0.84)
"""Parts of the scale that reaches a block's largest weight: smaller steps for all may be worth clipping that one."""


@dataclass(frozen=True, kw_only=True)
class Rounded:
    """A matrix [depth, columns] as (integers - zeros) * scales.

    Attributes:
        integers: int16[depth, columns].
        scales: float32[blocks, columns], as the model's own type holds them.
        zeros: int16[blocks, columns]; 0 for symmetric codes.
        block: rows that share a scale.
    """

    integers: Array
    scales: Array
    zeros: Array
    block: int

    @property
    def values(self) -> Array:
        """What they stand for, float32[depth, columns]."""
        depth = len(self.integers)
        zeros, scales = (one.repeat(self.block, axis=0)[:depth] for one in (self.zeros, self.scales))
        made: Array = (self.integers - zeros).astype(np.float32) * scales
        return made


def rounded(matrix: Array, code: Code, block: int, dtype: str) -> Rounded:
    """Round a matrix of finite floats.

    Args:
        block: rows that share a scale; 0 for all of them.
        dtype: the type in which the model holds scales.
    """
    if matrix.shape[1] > TOGETHER:
        starts = range(0, matrix.shape[1], TOGETHER)
        made = [rounded(matrix[:, start : start + TOGETHER], code, block, dtype) for start in starts]
        return Rounded(
            integers=np.concatenate([one.integers for one in made], axis=1),
            scales=np.concatenate([one.scales for one in made], axis=1),
            zeros=np.concatenate([one.zeros for one in made], axis=1),
            block=made[0].block,
        )
    depth, columns = matrix.shape
    block = min(block, depth) or depth
    blocks = -(-depth // block)
    padded = np.zeros((blocks * block, columns), np.float32)
    padded[:depth] = matrix
    if depth < len(padded):
        padded[depth:] = matrix[-1]  # of the last block, so that no zero widens its range
    parts = padded.reshape(blocks, block, columns)
    scales, zeros = _symmetric(parts, code, dtype) if code.symmetric else _asymmetric(parts, code, dtype)
    integers = _integers(parts, scales, zeros, code).reshape(-1, columns)[:depth]
    return Rounded(integers=integers, scales=scales, zeros=zeros, block=block)


def _integers(parts: Array, scales: Array, zeros: Array, code: Code) -> Array:
    steps = np.rint(parts / scales[:, None]) + zeros[:, None]
    made: Array = np.clip(steps, code.low, code.high).astype(np.int16)
    return made


def _symmetric(parts: Array, code: Code, dtype: str) -> tuple[Array, Array]:
    """The scales by which the largest weight becomes the last integer on either side, or nearly so."""
    largest = np.take_along_axis(parts, np.abs(parts).argmax(axis=1)[:, None], axis=1)[:, 0]
    zeros = np.zeros(largest.shape, np.int16)
    found = [largest / code.low * shrink for shrink in SHRINKS] + [np.abs(largest) / code.high]
    return _best(parts, [(_held(scales, dtype), zeros) for scales in found], code)


def _asymmetric(parts: Array, code: Code, dtype: str) -> tuple[Array, Array]:
    """The scales and zero points by which a block's range, 0 included, becomes that of the integers, or nearly so."""
    low, high = np.minimum(parts.min(axis=1), 0), np.maximum(parts.max(axis=1), 0)
    found = []
    for shrink in SHRINKS:
        scales = _held((high - low) / code.high * shrink, dtype)
        zeros = np.clip(np.rint(-low * np.float32(shrink) / scales), 0, code.high).astype(np.int16)
        found.append((scales, zeros))
    return _best(parts, found, code)


def _held(scales: Array, dtype: str) -> Array:
    """Scales as a type holds them; 1 where it holds none but zero, because a block of zeros needs no other."""
    stored: Array = scales.astype(dtype).astype(np.float32)
    return np.where(stored == 0, np.float32(1), stored)


def _best(parts: Array, found: list[tuple[Array, Array]], code: Code) -> tuple[Array, Array]:
    """For each block the scale and zero point that lose least, by the sum of squares."""
    best, zeros = found[0]
    least = np.full(best.shape, np.inf, np.float32)
    for scales, offsets in found:
        made = (_integers(parts, scales, offsets, code) - offsets[:, None]) * scales[:, None]
        lost = np.square(made - parts).sum(axis=1)
        better = lost < least
        best, zeros = np.where(better, scales, best), np.where(better, offsets, zeros)
        least = np.where(better, lost, least)
    return best, zeros
