"""How deep and how long the expression of a kernel becomes whose members are written into one another.

Planning and emission walk expressions by recursion, and compilers do; a chain of hundreds of operators is several
kernels. A value that is read twice is written twice, so that a chain of twenty operators that each read the one before
twice (`x * sin(x)`) would be an expression of a million terms: such a chain is several kernels as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smartmem_rules.plan.fusion.equations.program import Definition
from smartmem_rules.records import dataclass

_LEVELS_OF_GATHERS = 15
"""An index that is read at an index takes the recursion of so many nested operations, most of it where C is parsed."""


@dataclass(frozen=True)
class Nesting:
    """The size of an expression.

    Attributes:
        depth: operations nested in one another.
        terms: operations, reads and constants; what is read several times counts as often, and what is read at indices
            that are read themselves as often as these have atoms.
    """

    depth: int
    terms: int

    def within(self, limit: Nesting) -> bool:
        """Whether neither is larger than that of `limit`."""
        return self.depth <= limit.depth and self.terms <= limit.terms

    def around(self, inner: Nesting) -> Nesting:
        """The most that this expression becomes when another one is written into its reads."""
        return Nesting(self.depth + inner.depth, self.terms * inner.terms)


_READ = Nesting(0, 1)
"""The size of a read of a tensor that is stored."""


def nesting_after(definition: Definition, nestings: Mapping[str, Nesting]) -> Nesting:
    """The size of a definition's expression, given those of tensors that are written into it.

    What a reduction gives is computed once for all that read it: it is written as one term.
    """
    outline = definition.outline
    depth, terms = 0, outline.terms
    for tensor, atoms in outline.reads:
        inner = nestings.get(tensor, _READ)
        depth = max(depth, inner.depth + _LEVELS_OF_GATHERS * atoms)
        terms += inner.terms * max(1, atoms)
    return Nesting(1 + outline.levels + depth, terms)


def nesting_for_readers(definition: Definition, own: Nesting) -> Nesting:
    """What a definition adds to the expressions that read it."""
    return Nesting(own.depth, 1) if definition.reduces else own


def nesting_of(members: Iterable[Definition]) -> Nesting:
    """The size of the largest member, all of them written into one another; producers stand before consumers."""
    found: dict[str, Nesting] = {}
    depth, terms = 0, 0
    for member in members:
        own = nesting_after(member, found)
        depth, terms = max(depth, own.depth), max(terms, own.terms)
        found[member.tensor] = nesting_for_readers(member, own)
    return Nesting(depth, terms)
