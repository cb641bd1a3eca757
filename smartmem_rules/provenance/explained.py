"""Terms that remember why they are equal (Nieuwenhuis and Oliveras, Proof-Producing Congruence Closure, 2005)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from smartmem_rules.certificate.terms import ABSENT, Digests, Terms
from smartmem_rules.tensor.instantiate import Definitions


class ExplainedTerms(Terms):
    """The path between two equal terms is fixed when they become equal: later steps are never needed for it."""

    def __init__(self, base: Definitions, digests: Digests | None = None) -> None:
        super().__init__(base, digests)
        self.makers: dict[int, int] = {}
        """The step that made a term, where one did."""
        self._edges: dict[int, tuple[int, int | None]] = {}

    def merged(self, left: int, right: int, reason: int | None) -> None:
        """Join two trees of the proof forest."""
        path = [left]
        while path[-1] in self._edges:
            path.append(self._edges[path[-1]][0])
        for below, above in reversed(list(itertools.pairwise(path))):
            self._edges[above] = below, self._edges[below][1]
        self._edges[left] = right, reason

    def steps_between(self, pairs: Iterable[tuple[int, int]], seen: set[tuple[int, int]]) -> set[int]:
        """The steps from which the equality of each pair follows; `seen` pairs are passed over."""
        steps: set[int] = set()
        pending = list(pairs)
        while pending:
            left, right = pending.pop()
            if ABSENT in (left, right) or left == right or (left, right) in seen:
                continue
            seen.add((left, right))
            for one, other, reason in self._path(left, right):
                if reason is not None:
                    steps.add(reason)
                    continue
                pending += zip(self.terms[one].children, self.terms[other].children, strict=True)
        return steps

    def _path(self, left: int, right: int) -> list[tuple[int, int, int | None]]:
        above = {left: 0}
        edges: list[tuple[int, int, int | None]] = []
        current = left
        while current in self._edges:
            following, reason = self._edges[current]
            edges.append((current, following, reason))
            above[following] = len(edges)
            current = following
        back: list[tuple[int, int, int | None]] = []
        current = right
        while current not in above:
            following, reason = self._edges[current]
            back.append((current, following, reason))
            current = following
        return edges[: above[current]] + back
