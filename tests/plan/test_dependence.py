"""Which groups need which, while they join, against a search through the whole graph after each step."""

from __future__ import annotations

import random

import pytest

from smartmem_rules.plan.fusion.dependence import Watched
from smartmem_rules.plan.kernel.graph import needs, toposort


class Graph:
    """Groups by number, which read others and become one."""

    def __init__(self, draw: random.Random, size: int) -> None:
        numbers = draw.sample(range(size), size)  # the numbers tell nothing about the order
        self.reads = {
            one: {other for other in numbers[:place] if draw.random() < 2 / (place + 1)}
            for place, one in enumerate(numbers)
        }

    def producers(self, group: int) -> list[int]:
        return sorted(self.reads[group])

    def consumers(self, group: int) -> list[int]:
        return sorted(one for one, read in self.reads.items() if group in read)

    def depends(self, group: int, on: int) -> bool:
        return needs([group], on, self.producers)

    def join(self, into: int, group: int) -> None:
        """The group becomes part of another one."""
        self.reads[into] |= self.reads.pop(group)
        for read in self.reads.values():
            if group in read:
                read.discard(group)
                read.add(into)
        self.reads[into].discard(into)


@pytest.mark.parametrize("seed", range(60))
def test_watched_groups_know_what_they_need(seed: int) -> None:
    draw = random.Random(seed)
    graph = Graph(draw, draw.randrange(4, 40))
    order = toposort(sorted(graph.reads), graph.producers)
    assert order is not None
    watched: Watched[int] = Watched(order, graph.producers, graph.consumers)
    there: list[int] = []
    for group in draw.sample(order, len(order)):
        if draw.random() < 0.3:
            continue  # nobody asks about it
        around = watched.around(group)
        apart = [one for one in there if watched.apart(one, around)]
        assert apart == [one for one in there if not graph.depends(group, one) and not graph.depends(one, group)], seed
        if apart and draw.random() < 0.7:
            into = draw.choice(apart)
            watched.join(into, group, around)
            graph.join(into, group)
            assert toposort(sorted(graph.reads), graph.producers) is not None
        else:
            watched.watch(group, around)
            there.append(group)
