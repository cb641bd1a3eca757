"""On which layer each vertex of a graph stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A graph without circles.

    Attributes:
        vertices: how many; they are called by their numbers.
        edges: from a vertex to one that depends on it, each once; no vertex depends on itself.
    """

    vertices: int
    edges: tuple[tuple[int, int], ...]

    @staticmethod
    def of(vertices: int, edges: Iterable[tuple[int, int]]) -> Shape:
        """A graph with these edges, as often as they are named."""
        return Shape(vertices=vertices, edges=tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1])))

    @cached_property
    def above(self) -> Sequence[Sequence[int]]:
        """For each vertex those that it depends on."""
        found: list[list[int]] = [[] for _ in range(self.vertices)]
        for source, target in self.edges:
            found[target].append(source)
        return found

    @cached_property
    def below(self) -> Sequence[Sequence[int]]:
        """For each vertex those that depend on it."""
        found: list[list[int]] = [[] for _ in range(self.vertices)]
        for source, target in self.edges:
            found[source].append(target)
        return found

    def sorted(self) -> list[int]:
        """The vertices, each behind those that it depends on; those of a circle are left out."""
        waits = [len(sources) for sources in self.above]
        found = [vertex for vertex in range(self.vertices) if not waits[vertex]]
        for vertex in found:
            for target in self.below[vertex]:
                waits[target] -= 1
                if not waits[target]:
                    found.append(target)
        return found


def layers(shape: Shape) -> list[int]:
    """The layer of each vertex, 0 for the topmost: below all that it depends on.

    A vertex that depends on one other at most stands as low as it can, right above its first reader: so constants and
    short branches stand where they are used.

    Raises:
        ValueError: the graph has a circle.
    """
    order = shape.sorted()
    if len(order) < shape.vertices:
        raise ValueError("a graph with a circle has no layers")
    found = [0] * shape.vertices
    for vertex in order:
        found[vertex] = max((found[source] + 1 for source in shape.above[vertex]), default=0)
    for vertex in reversed(order):
        if len(shape.above[vertex]) <= 1 and shape.below[vertex]:
            found[vertex] = min(found[target] for target in shape.below[vertex]) - 1
    return found
