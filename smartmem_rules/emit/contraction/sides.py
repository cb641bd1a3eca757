"""The factors of a contraction whose tiles a work-group shares, and the texts that bring these to local memory."""

from __future__ import annotations

from collections.abc import Callable

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr


@dataclass(frozen=True, kw_only=True)
class Loading:
    """C text that brings one factor's tile into registers (`load`), and from there to local memory (`keep`).

    Attributes:
        copy: brings it to local memory without registers, beside `left_into` or `right_into`, and then there is nothing
            to load and to keep.
        fetch: brings it into the device's cache.
        turned: whether columns of the right factor are rows of its tile.
        written_out: whether a few turns are better written out than looped over: what tells the elements of one turn
            from those of the next is then known to the compiler.
    """

    declaration: str = ""
    load: str = ""
    keep: str = ""
    copy: str = ""
    fetch: str = ""
    turned: bool = False
    written_out: bool = False

    @property
    def copied(self) -> bool:
        return bool(self.copy)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One factor of a product as tiles see it.

    Attributes:
        name: left | right, as the template calls the tile in local memory.
        own: the axes that the factor does not share with the other one: rows of the left, columns of the right.
        k: the axes of the reduction.
        first: C text of the tile's first place along `own`.
        by_row: whether values depend on statistics that lie in local memory by the row `at` of the tile.
    """

    name: str
    factor: Expr
    own: tuple[Var, ...]
    k: tuple[Var, ...]
    first: str
    by_row: bool = False


def captured(emission: Emission, write: Callable[[], None]) -> str:
    """What a function writes, as text of its own."""
    own, body = Writer(), emission.writer
    emission.writer = emission.expressions.writer = own
    with emission.expressions.scope(""):
        write()
    emission.writer = emission.expressions.writer = body
    return own.text()
