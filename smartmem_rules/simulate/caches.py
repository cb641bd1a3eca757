"""Set-associative caches with least-recently-used replacement, many of them side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cache:
    """A cache.

    Attributes:
        bytes: its size.
        ways: lines of one set.
        line: bytes of a line.
    """

    bytes: int
    ways: int
    line: int

    @property
    def lines(self) -> int:
        return self.bytes // self.line

    @property
    def sets(self) -> int:
        return max(1, self.lines // self.ways)

    def hits(self, lines: Array, units: Array | None = None) -> Array:
        """Which accesses hit, in the order in which they are given; the cache is empty before.

        Args:
            lines: the line numbers that are accessed.
            units: for each access which of several equal caches it goes to.
        """
        place = lines % self.sets
        if units is not None:
            place = place + units * self.sets
        return _replay(place, lines, self.ways)


def _replay(sets: Array, lines: Array, ways: int) -> Array:
    """Least-recently-used replacement: the i-th accesses of all sets are one step."""
    hits = np.zeros(len(lines), dtype=bool)
    if not len(lines):
        return hits
    order = np.argsort(sets, kind="stable")
    ordered_sets, ordered_lines = sets[order], lines[order]
    # the same line twice running hits the second time and changes nothing
    again = np.zeros(len(lines), dtype=bool)
    again[1:] = (ordered_sets[1:] == ordered_sets[:-1]) & (ordered_lines[1:] == ordered_lines[:-1])
    hits[order[again]] = True
    order, ordered_sets, ordered_lines = order[~again], ordered_sets[~again], ordered_lines[~again]
    _, first, counts = np.unique(ordered_sets, return_index=True, return_counts=True)
    by_length = np.argsort(-counts, kind="stable")
    first, counts = first[by_length], counts[by_length]
    recent = np.full((len(first), ways), -1, dtype=np.int64)
    rank = np.arange(ways)
    found = np.empty(len(order), dtype=bool)
    active = len(first)
    for step in range(int(counts[0])):
        while counts[active - 1] <= step:
            active -= 1
        at = first[:active] + step
        line = ordered_lines[at]
        state = recent[:active]
        same = state == line[:, None]
        hit = same.any(axis=1)
        depth = np.where(hit, same.argmax(axis=1), ways - 1)
        shifted = np.concatenate([line[:, None], state[:, :-1]], axis=1)
        recent[:active] = np.where(rank <= depth[:, None], shifted, state)
        found[at] = hit
    hits[order] = found
    return hits
