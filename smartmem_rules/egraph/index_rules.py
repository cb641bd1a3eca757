"""Index rules of `.smr` files on the index maps in which the normaliser left a division or modulo."""

from __future__ import annotations

from collections.abc import Collection

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.views import IndexMap
from typing import Protocol, Sequence


class IndexRules(Protocol):
    @property
    def index_rules(self) -> Sequence[ast.IndexRule]: ...


class Improver:
    def __init__(self, base: IndexRules, disable: Collection[str]) -> None:
        self.rules = [r for r in base.index_rules if r.name not in disable]

    def improve(self, map_: IndexMap) -> IndexMap:
        return map_
