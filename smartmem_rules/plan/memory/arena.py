"""Allocates blocks, each with a lifetime, at offsets of one arena.

Placing blocks so that none that are needed at once overlap is hard in general. Graphs of networks are kind: a greedy
placement nearly always reaches the largest sum of sizes that are needed at once, below which none goes. Where it does
not, blocks that stick out are placed earlier, again and again, and at last an integer program decides (Sekiyama et
al., "Profile-guided memory optimization for deep neural networks", 2018, gives it; greedy placement by size is
Pisarchyk and Lee's, 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import highspy
import numpy as np

from smartmem_rules import linear_programs
from smartmem_rules.records import dataclass

ROUNDS = 30
EXACT = 30
"""Blocks up to which the integer program is asked."""
SECONDS = 1.0
RELATIVE_GAP = 1e-4


@dataclass(frozen=True)
class Block:
    """A demand: `bytes` from the step `first` to the step `last`, both included."""

    bytes: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


def peak(blocks: Sequence[Block]) -> int:
    """The largest sum of bytes that are needed at one step: no placement needs less."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.bytes
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.bytes
    total = most = 0
    for step in sorted(changes):
        total += changes[step]
        most = max(most, total)
    return most


def place(blocks: Sequence[Block]) -> list[int]:
    """An offset for each block, such that no two that meet overlap; the end is as low as the search finds it."""
    bound = peak(blocks)
    best, end = _search(blocks, bound)
    if end > bound and len(blocks) <= EXACT:
        exact = _exact(blocks, bound, end)
        if exact is not None and height(blocks, exact) < end:
            return exact
    return best


def height(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """The bytes that a placement takes."""
    return max((offset + block.bytes for block, offset in zip(blocks, offsets, strict=True)), default=0)


def _search(blocks: Sequence[Block], bound: int) -> tuple[list[int], int]:
    keys: tuple[Callable[[int], Any], ...] = (
        lambda n: -blocks[n].bytes,
        lambda n: -blocks[n].bytes * (blocks[n].last - blocks[n].first + 1),
        lambda n: blocks[n].first - blocks[n].last,
        lambda n: blocks[n].first,
        lambda n: -blocks[n].last,
    )
    best: list[int] = []
    end = -1
    for key in keys:
        order = sorted(range(len(blocks)), key=lambda n: (key(n), -blocks[n].bytes, n))
        for _ in range(ROUNDS):
            offsets = _greedy(blocks, order)
            found = height(blocks, offsets)
            if end < 0 or found < end:
                best, end = offsets, found
            if end <= bound:
                return best, end
            # what sticks out goes first at the next try
            over = dict.fromkeys(n for n in order if offsets[n] + blocks[n].bytes > bound)
            earlier = [*over, *(n for n in order if n not in over)]
            if earlier == order:
                break
            order = earlier
    return best, max(end, 0)


def _greedy(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Each block in its turn into the smallest gap that holds it between those that it meets, else above them."""
    offsets = [0] * len(blocks)
    # of each placed block, in the order of offsets: offset, end, first and last step
    placed = np.zeros((4, len(blocks)), np.int64)
    for count, n in enumerate(order):
        block = blocks[n]
        there = placed[:, :count]
        low, high = there[:2, (there[2] <= block.last) & (there[3] >= block.first)]
        tops = np.concatenate(([0], np.maximum.accumulate(high)))
        room = low - tops[:-1]
        fitting = np.flatnonzero(room >= block.bytes)
        offsets[n] = int(tops[fitting[room[fitting].argmin()]] if len(fitting) else tops[-1])
        end = offsets[n] + block.bytes
        start, stop = (int(np.searchsorted(there[0], offsets[n], side)) for side in ("left", "right"))
        at = start + int(np.searchsorted(there[1, start:stop], end))
        placed[:, at + 1 : count + 1] = placed[:, at:count].copy()
        placed[:, at] = offsets[n], end, block.first, block.last
    return offsets


def _exact(blocks: Sequence[Block], bound: int, end: int) -> list[int] | None:
    """The lowest placement by an integer program: of two blocks that meet, one lies below the other."""
    pairs = [(i, j) for j in range(len(blocks)) for i in range(j) if blocks[i].meets(blocks[j])]
    count, scale = len(blocks), max(1, end)
    columns = count + 1 + len(pairs)
    rows: list[tuple[float, dict[int, float]]] = []
    for n, block in enumerate(blocks):
        rows.append((block.bytes / scale, {count: 1.0, n: -1.0}))
    for number, (i, j) in enumerate(pairs, count + 1):
        rows.append((blocks[i].bytes / scale - 1, {j: 1.0, i: -1.0, number: -1.0}))
        rows.append((blocks[j].bytes / scale, {i: 1.0, j: -1.0, number: 1.0}))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, len(rows)
    model.col_cost_ = np.array([0.0] * count + [1.0] + [0.0] * len(pairs))
    model.col_lower_ = np.array([0.0] * count + [bound / scale] + [0.0] * len(pairs))
    model.col_upper_ = np.ones(columns)
    model.row_lower_ = np.array([row[0] for row in rows])
    model.row_upper_ = np.full(len(rows), highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.cumsum([0, *(len(row[1]) for row in rows)])
    model.a_matrix_.index_ = np.array([column for row in rows for column in row[1]])
    model.a_matrix_.value_ = np.array([value for row in rows for value in row[1].values()])
    kinds = [highspy.HighsVarType.kContinuous] * (count + 1)
    model.integrality_ = kinds + [highspy.HighsVarType.kInteger] * len(pairs)
    solver = linear_programs.solver(SECONDS, RELATIVE_GAP)
    solver.passModel(model)
    solver.run()
    values = solver.getSolution().col_value
    if len(values) != columns:
        return None
    # only the order from below is taken from the solver, whose numbers are rounded
    return _greedy_from_below(blocks, sorted(range(count), key=lambda n: values[n]))


def _greedy_from_below(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    offsets = [0] * len(blocks)
    for place, n in enumerate(order):
        below = (m for m in order[:place] if blocks[n].meets(blocks[m]))
        offsets[n] = max((offsets[m] + blocks[m].bytes for m in below), default=0)
    return offsets
