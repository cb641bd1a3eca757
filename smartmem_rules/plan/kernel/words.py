"""Integers of few bits, several in a word of 32 bits: the order in which register tiles unpack them."""

from __future__ import annotations

import numpy as np

from smartmem_rules.records import dataclass

WORD_BITS = 32
LARGEST_ZERO = 255


@dataclass(frozen=True, kw_only=True)
class Words:
    """Weights as a register tile reads them, by batch, tile of columns, step of the reduction, column.

    A word holds neighbouring steps of one column, the first in its lowest bits. A block begins with a new word.

    Attributes:
        words: uint32[batch, tiles, words of all blocks, columns].
        scales: float32[batch, tiles, blocks, columns]; 0 for columns behind the last.
        zeros: uint8 of the same shape, or one number where all are equal.
    """

    words: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | int
    bits: int


def words_of_block(block: int, bits: int) -> int:
    """The words that hold a block of one column."""
    return -(-block * bits // WORD_BITS)


def packed_words(
    integers: np.ndarray, zero: np.ndarray, scale: np.ndarray, *, block: int, columns: int, widths: tuple[int, ...]
) -> Words | None:
    """Pack (integers - zero) * scale; None where these numbers do not allow it.

    The zero has to be a whole number and the scale finite, so that what kernels unpack is the number that the
    expression gives; a word has to be full of one block's elements.

    Args:
        integers: whole numbers [batch, depth, columns], of any type.
        zero, scale: float32[batch, blocks, columns].
        columns: of a tile.
        widths: bits that an element may have, the fewest first.
    """
    if not np.isfinite(scale).all() or not (zero == np.rint(zero)).all():
        return None
    least = min(float(integers.min()), float(zero.min()))
    most, highest = float(integers.max()) - least, float(zero.max()) - least
    bits = next((b for b in widths if most < 2**b), None)
    overflows = float(np.abs(scale).max(initial=0)) * max(most, highest) > float(np.finfo(np.float32).max)
    if bits is None or highest > LARGEST_ZERO or block * bits < WORD_BITS or overflows:
        return None
    zeros = (zero - least).astype(np.uint8)
    one = int(zeros.flat[0])
    return Words(
        words=_in_tiles(_words((integers - integers.dtype.type(least)).astype(np.uint8), block, bits), columns),
        scales=_in_tiles(scale.astype(np.float32, copy=False), columns),
        zeros=one if (zeros == one).all() else _in_tiles(zeros, columns),
        bits=bits,
    )


def _words(values: np.ndarray, block: int, bits: int) -> np.ndarray:
    """Neighbouring rows of blocks in words."""
    each = WORD_BITS // bits
    found = []
    for start in range(0, values.shape[1], block):
        part = values[:, start : start + block]
        words = part[:, ::each].astype(np.uint32)  # in the order in which the integers lie
        for place in range(1, each):
            rows = part[:, place::each]
            words[:, : rows.shape[1]] |= rows.astype(np.uint32) << np.uint32(place * bits)
        found.append(words)
    return np.concatenate(found, axis=1)


def _in_tiles(values: np.ndarray, columns: int) -> np.ndarray:
    """The last axis in tiles, each filled up with zeros; a tile's elements lie together."""
    batch, rows, width = values.shape
    tiles = -(-width // columns)
    padded = np.pad(values, ((0, 0), (0, 0), (0, tiles * columns - width)))
    return np.ascontiguousarray(padded.reshape(batch, rows, tiles, columns).transpose(0, 2, 1, 3))
