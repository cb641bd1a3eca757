"""A right factor of integers in words, as the register block unpacks it (`codegen/word_block.cl`)."""

from __future__ import annotations

from smartmem_rules.plan.kernel.words import words_of_block
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class RightWords:
    """What a register block needs to know of the factor.

    Attributes:
        bits: of an integer.
        block: steps of the reduction that share a scale.
        depth: steps of the reduction.
        zero: of all blocks, None where they have zeros of their own.
    """

    bits: int
    block: int
    depth: int
    zero: int | None

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
