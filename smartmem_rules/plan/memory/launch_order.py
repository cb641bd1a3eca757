"""The order of launches: one with a small memory peak, or the order in which they come.

What has been computed says what is still needed, whatever the way there. The orders of a graph are therefore the paths
through its sets of finished launches, of which a network has few: a search for the path whose largest step is smallest
visits them all, unless there are too many.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.records import dataclass

Pairs = Mapping[str, tuple[str, ...]]
"""For tensors that may be written into the memory of another one: of which, if no later launch needs it."""

STATES = 4000


@dataclass(frozen=True)
class LaunchOrder:
    """An order of the launches.

    Attributes:
        peak: the largest sum of bytes that are needed at once.
        best: whether no order needs less.
    """

    launches: list[Launch]
    peak: int
    best: bool


class _Graph:
    """What each launch needs, makes and ends; launches are numbers, sets of them bits."""

    def __init__(self, launches: Sequence[Launch], sizes: Mapping[str, int], pairs: Pairs) -> None:
        self.launches = launches
        self.sizes = sizes
        self.pairs = pairs
        graph = KernelGraph(launches)
        self.before = [
            # what is written in pieces is written in one order
            _bits(n for name in (*launch.reads, *launch.writes) for n in graph.makers.get(name, ()) if n < number)
            for number, launch in enumerate(launches)
        ]
        self.users = {
            name: _bits((*graph.makers.get(name, ()), *graph.users.get(name, ())))
            for name in {*graph.makers, *graph.users}
        }
        self.all = (1 << len(launches)) - 1

    def ready(self, done: int) -> list[int]:
        """The launches that may come next."""
        return [n for n, b in enumerate(self.before) if not done >> n & 1 and not b & ~done]

    def step(self, done: int, live: int, number: int) -> tuple[int, int]:
        """The bytes while a launch runs after others, and afterwards."""
        launch, after = self.launches[number], done | 1 << number
        names = dict.fromkeys(n for n in (*launch.reads, *launch.writes) if n in self.sizes)
        made = [n for n in names if n in launch.writes and not self.users[n] & done]
        during = live + sum(self.sizes[n] for n in made)
        ending = [n for n in names if not self.users[n] & ~after]
        over = set()
        for name in made:
            under = next((n for n in self.pairs.get(name, ()) if n in ending and n not in over), None)
            if under is not None:
                over.add(under)
        return during - sum(self.sizes[n] for n in over), during - sum(self.sizes[n] for n in ending)


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def least_memory_order(launches: Sequence[Launch], sizes: Mapping[str, int], pairs: Pairs) -> LaunchOrder:
    """The launches in an order that needs the least memory, as near to the given one as that allows.

    Args:
        sizes: the bytes of each tensor that shares memory.
        pairs: which tensors may be written in place.
    """
    graph = _Graph(launches, sizes, pairs)
    given = _peak(graph, range(len(launches)))
    least = _least(graph, given)
    if least is None:
        return LaunchOrder(list(launches), given, False)
    if least >= given:
        return LaunchOrder(list(launches), given, True)
    path = _path(graph, least)
    return LaunchOrder([launches[n] for n in path], least, True)


def _peak(graph: _Graph, order: Sequence[int]) -> int:
    done = live = most = 0
    for number in order:
        during, live = graph.step(done, live, number)
        most = max(most, during)
        done |= 1 << number
    return most


def _least(graph: _Graph, given: int) -> int | None:
    """The least peak of any order, `given` if none is below it; None if there are too many orders to tell."""
    queue = [(0, 0, 0, 0)]  # the peak, launches that are missing, those that are done, and the bytes that they leave
    seen: set[int] = set()
    while queue:
        most, _, done, live = heapq.heappop(queue)
        if done in seen:
            continue
        seen.add(done)
        if done == graph.all or most >= given:
            return min(most, given)
        if len(seen) > STATES:
            return None
        for number in graph.ready(done):
            after = done | 1 << number
            if after not in seen:
                during, left = graph.step(done, live, number)
                heapq.heappush(queue, (max(most, during), len(graph.launches) - after.bit_count(), after, left))
    return given


def _path(graph: _Graph, limit: int) -> list[int]:
    """The first order, by the launches' numbers, that stays within the limit."""
    failed: set[int] = set()
    path: list[int] = []
    stack = [(0, 0, iter(graph.ready(0)))]
    while len(path) < len(graph.launches):
        done, live, rest = stack[-1]
        for number in rest:
            after = done | 1 << number
            during, left = graph.step(done, live, number)
            if during <= limit and after not in failed:
                path.append(number)
                stack.append((after, left, iter(graph.ready(after))))
                break
        else:
            failed.add(done)
            stack.pop()
            path.pop()
    return path
