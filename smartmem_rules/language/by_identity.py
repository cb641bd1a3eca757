"""What was computed of a syntax tree, found again for the same tree without comparing it node by node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Tree = TypeVar("_Tree")
_Value = TypeVar("_Value")


class ByIdentity(Generic[_Tree, _Value]):
    """Results by the tree that they belong to; of too many the one that was added first goes.

    A tree stays alive as long as its result, so that no other tree gets its identity.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.known: dict[int, tuple[_Tree, _Value]] = {}
        """The trees and their results by the identity of the tree; to look into."""
        self._adding = threading.Lock()

    def get(self, tree: _Tree, compute: Callable[[_Tree], _Value]) -> _Value:
        """The result for a tree, computed at the first call."""
        known = self.known.get(id(tree))
        if known is not None:
            return known[1]
        value = compute(tree)
        with self._adding:
            self.known[id(tree)] = (tree, value)
            if len(self.known) > self._most:
                del self.known[next(iter(self.known))]
        return value
