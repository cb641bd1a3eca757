"""Where vertices stand on their layers: near their neighbours, in their order, none over another."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.report.drawing.wires import Layered

WIDTH = 176
"""Of a vertex, in pixels."""
GAP = 20
"""Between vertices, and between a vertex and a wire that passes it."""
_SWEEPS = 8
_IDLE = 1e-4
"""How much a vertex wants to stay where it is when it has no neighbours on the side that is looked at."""
_STRAIGHT = 8.0
"""How much more a wire wants to be straight between two of its own points than elsewhere."""


def placed(graph: Layered, rows: Sequence[Sequence[int]]) -> list[int]:
    """The middle of each vertex and point, in pixels; the leftmost vertex begins at 0."""
    found = [0.0] * len(graph.layer)
    for row in rows:
        for one, least in zip(row, _least(graph, row), strict=True):
            found[one] = least
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = graph.above if downwards else graph.below
        for row in rows if downwards else reversed(rows):
            _move(graph, row, neighbours, found)
    left = min((found[one] - _half(graph, one) for one in range(len(found))), default=0.0)
    return [round(middle - left) for middle in found]


def _half(graph: Layered, one: int) -> float:
    return WIDTH / 2 if one < graph.vertices else 0.0


def _least(graph: Layered, row: Sequence[int]) -> list[float]:
    """The middles of a row whose vertices stand as close as they may."""
    found: list[float] = []
    for number, one in enumerate(row):
        before = row[number - 1] if number else one
        found.append(found[-1] + _half(graph, before) + GAP + _half(graph, one) if number else _half(graph, one))
    return found


def _move(graph: Layered, row: Sequence[int], neighbours: Sequence[Sequence[int]], middles: list[float]) -> None:
    """Move a row to where its neighbours want it: the least squares of the distances, in the row's order."""
    least = _least(graph, row)
    blocks: list[tuple[float, float, int]] = []  # the mean wish of neighbours that touch, its weight, how many
    for one, own in zip(row, least, strict=True):
        wish, weight = _wish(graph, one, neighbours[one], middles)
        mean, total, count = wish - own, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, many = blocks.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        blocks.append((mean, total, count))
    shifts = [mean for mean, _, count in blocks for _ in range(count)]
    for one, own, shift in zip(row, least, shifts, strict=True):
        middles[one] = own + shift


def _wish(graph: Layered, one: int, near: Sequence[int], middles: Sequence[float]) -> tuple[float, float]:
    """Where a vertex or point wants to stand, and how much."""
    weights = [_STRAIGHT if one >= graph.vertices <= other else 1.0 for other in near]
    total = sum(weights)
    if not total:
        return middles[one], _IDLE
    return sum(weight * middles[other] for weight, other in zip(weights, near, strict=True)) / total, total
