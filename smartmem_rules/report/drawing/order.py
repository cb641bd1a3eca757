"""In which order vertices stand on their layers, so that few wires cross (Sugiyama, Tagawa and Toda, 1981)."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from smartmem_rules.report.drawing.wires import Layered

_SWEEPS = 6


def ordered(graph: Layered) -> list[list[int]]:
    """The rows of a graph, sorted by the mean places of their neighbours; of several tries the one with the fewest
    crossings."""
    rows = _first(graph)
    best, least = [list(row) for row in rows], _crossings(graph, rows)
    for sweep in range(_SWEEPS):
        if not least:
            break
        downwards = sweep % 2 == 0
        for number in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            beside = rows[number - 1 if downwards else number + 1]
            _sort(rows[number], beside, graph.above if downwards else graph.below)
        crossings = _crossings(graph, rows)
        if crossings < least:
            best, least = [list(row) for row in rows], crossings
    return best


def _first(graph: Layered) -> list[list[int]]:
    """The rows as a walk from the top meets their vertices, branch by branch."""
    rows: list[list[int]] = [[] for _ in graph.rows()]
    met = [False] * len(graph.layer)
    stack = [one for one in range(len(graph.layer) - 1, -1, -1) if not graph.above[one]]
    while stack:
        one = stack.pop()
        if not met[one]:
            met[one] = True
            rows[graph.layer[one]].append(one)
            stack.extend(reversed(graph.below[one]))
    return rows


def _sort(row: list[int], beside: Sequence[int], neighbours: Sequence[Sequence[int]]) -> None:
    place = {one: number for number, one in enumerate(beside)}
    own = {one: number for number, one in enumerate(row)}

    def mean(one: int) -> float:
        near = neighbours[one]
        return sum(place[other] for other in near) / len(near) if near else own[one]

    row.sort(key=mean)


def _crossings(graph: Layered, rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of wires cross between neighbouring rows."""
    found = 0
    for row, lower in pairwise(rows):
        place = {one: number for number, one in enumerate(lower)}
        seen: list[int] = []
        for one in row:
            ends = sorted(place[other] for other in graph.below[one])
            found += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return found
