"""Who is told where a definition reads its operands, while its expressions are built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.expr import Condition
from smartmem_rules.tensor.index import Index


class Watch(Protocol):
    """Is told of every read of a definition."""

    def inside(self, read: ast.Expression) -> None:
        """A read stays inside its tensor, at all values of the open extents."""

    def undecided(self, read: ast.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        """Whether one index of a read stays inside its axis is not known."""
