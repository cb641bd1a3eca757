"""Right factors of integers of few bits, packed into words that register tiles unpack (codegen/word_block.cl)."""

from __future__ import annotations

from smartmem_rules.plan.kernel.words import words_of_block
from smartmem_rules.records import dataclass

MANTISSA, BIAS = 23, 127
"""Of a float of 32 bits: the bits below its power of two, and what is added to the exponent."""


@dataclass(frozen=True, kw_only=True)
class RightWords:
    """What a register block needs to know of the factor.

    Attributes:
        bits: of an integer.
        block: steps of the reduction that share a scale.
        depth: steps of the reduction.
        zero: of all blocks, None where they have zeros of their own.
        ahead: bytes by which a tile of one row requests words before it reads them, 0 for no requests.
    """

    bits: int
    block: int
    depth: int
    zero: int | None
    ahead: int

    @property
    def blocks(self) -> int:
        """Whole blocks."""
        return self.depth // self.block

    @property
    def rest(self) -> int:
        """Steps of the last block, where it is shorter than others."""
        return self.depth % self.block

    @property
    def block_words(self) -> int:
        """Words of a whole block of one column."""
        return words_of_block(self.block, self.bits)

    @property
    def rows_of_words(self) -> int:
        """Words of one column."""
        return self.blocks * self.block_words + words_of_block(self.rest, self.bits)

    @property
    def rows_of_scales(self) -> int:
        return self.blocks + (self.rest > 0)

    @property
    def in_place(self) -> int:
        """Integers of a word that become floats where they are, after one shift.

        Each place needs a zero point of its own, for which there are no registers where blocks have theirs.
        """
        return 1 if self.zero is None else MANTISSA // self.bits

    @property
    def scales_ahead(self) -> int:
        """Bytes by which scales are requested, to come with the words of their block."""
        return self.ahead // self.block_words

    def power_bits(self, place: int) -> int:
        """The bits of the float to whose last bits, from `place` on, an integer adds its value."""
        return BIAS + MANTISSA - place << MANTISSA

    def zero_text(self, place: int, vector: int) -> str:
        """What that float is at the zero point, as C; exact, because zero points have at most 8 bits."""
        return f"zero{vector}" if self.zero is None else f"{2 ** (MANTISSA - place) + self.zero}.0f"
