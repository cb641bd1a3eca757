"""Sums of many elements, added up block by block, so that their error grows with the number of blocks' levels.

One accumulator of n elements is off by up to n roundings, and stops growing where it is 2^24 times as large as an
element of float32. Sums of at most `LONGEST` elements, added up in sums of at most `LONGEST` of them, have neither
fault (pairwise summation with a block, as numpy has it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from smartmem_rules.emit.c.team import Team
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.ranges import largest, surely_at_most

LONGEST = 128
"""Elements that one accumulator takes."""
LONGEST_PRODUCT = 1024
"""Products that one accumulator of a contraction takes: more, because a longer loop is faster."""
LONGEST_TILE = 8192
"""Products that one accumulator of a work-group's tile takes: partial sums would need registers of their own."""


@dataclass(frozen=True, kw_only=True)
class LoopSums:
    """What the accumulators of one loop of a nest are.

    Attributes:
        blocks: turns of the loops that divide it, the outermost first; each has an accumulator of its own.
        inner: whether a turn of the loop has an accumulator of its own.
    """

    blocks: tuple[int, ...] = ()
    inner: bool = False


@dataclass(frozen=True, kw_only=True)
class TermLoop:
    """A loop over terms of a reduction, or over those of a block.

    Attributes:
        written_out: whether all turns are written out.
        team: the work-items that divide the loop, if they do.
        begin, end: C text of the first term and of what is behind the last.
    """

    variable: Var
    written_out: bool = False
    team: Team | None = None
    sums: LoopSums = field(default_factory=LoopSums)
    begin: str = "0"
    end: str = ""

    @property
    def turns(self) -> int:
        """How often one work-item runs the loop at most."""
        return -(-largest(self.variable.extent) // self._members)

    @property
    def _members(self) -> int:
        return 1 if self.team is None else self.team.size

    @property
    def _end(self) -> str:
        return self.end or str(self.variable.extent)

    @property
    def _length(self) -> int:
        return self.sums.blocks[0] * self._members

    def block_head(self, begin: str) -> str:
        """The loop over the blocks, whose first term has the name `begin`."""
        return f"for (int {begin} = {self.begin}; {begin} < {self._end}; {begin} += {self._length})"

    def in_block(self, begin: str) -> TermLoop:
        """The loop over the terms of the block."""
        sums = replace(self.sums, blocks=self.sums.blocks[1:])
        return replace(self, sums=sums, begin=begin, end=f"min({begin} + {self._length}, {self._end})")

    def head(self, name: str) -> str | None:
        """The loop over the terms as C text, if it is not the plain one over the whole extent."""
        if self.team is not None:
            return self.team.head(name, self.variable.extent, self.begin, self._end)
        if not self.end:
            return None
        return f"for (int {name} = {self.begin}; {name} < {self.end}; ++{name})"


@dataclass(frozen=True)
class Accumulators:
    """C variables of one type that loops add terms to, each its own."""

    names: tuple[str, ...]
    vector: str
    start: str


def in_partial_sums(loops: Sequence[TermLoop], longest: int) -> list[TermLoop]:
    """Nested loops whose accumulators take at most `longest` terms, or partial sums, each."""
    found: list[TermLoop] = []
    count = 1
    for loop in reversed(loops):
        if count * loop.turns <= longest:
            count *= loop.turns
            found.append(loop)
            continue
        blocks = _blocks(loop.turns, longest)
        found.append(replace(loop, sums=LoopSums(blocks=blocks, inner=count > 1)))
        count = -(-loop.turns // blocks[0]) if blocks else loop.turns
    return found[::-1]


def _blocks(turns: int, longest: int) -> tuple[int, ...]:
    blocks: list[int] = []
    size = longest
    while size < turns:
        blocks.append(size)
        size *= longest
    return tuple(reversed(blocks))


def product_block(k: int) -> int:
    """Products of a partial sum of a contraction over k of them; 0 where one sum takes them all."""
    return 0 if surely_at_most(k, LONGEST_PRODUCT) else LONGEST_PRODUCT


def turns_summed(turns: int, products: int, longest: int) -> int:
    """Turns of a partial sum of a work-group's tile; 0 where one sum takes them all.

    Args:
        products: of an accumulator in each turn.
        longest: products that one accumulator takes.
    """
    most = max(longest // products, 1)
    return 0 if surely_at_most(turns, most) else most
