"""What the size of an expression depends on, found in one walk."""

from __future__ import annotations

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Expr, Read, children, walk


@dataclass(frozen=True)
class Outline:
    """The shape of an expression.

    Attributes:
        levels: operations nested in one another, reads and constants included.
        terms: what is no read.
        reads: each read's tensor, and the atoms of those of its indices that are read themselves.
    """

    levels: int
    terms: int
    reads: tuple[tuple[str, int], ...]


def outline_of(expr: Expr) -> Outline:
    """The outline of an expression."""
    terms, reads = 0, []
    for node in walk(expr):
        if isinstance(node, Read):
            reads.append((node.tensor, sum(index.size for index in node.indices if index.gathered)))
        else:
            terms += 1
    return Outline(_levels(expr), terms, tuple(reads))


def _levels(expr: Expr) -> int:
    return 1 + max((_levels(child) for child in children(expr)), default=0)
