"""The wires of a drawing, and the places that they take on the layers that they pass."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.records import dataclass
from smartmem_rules.report.drawing.layers import Shape


@dataclass(frozen=True, kw_only=True)
class Layered:
    """A graph whose edges run from one layer to the next: long ones pass points that stand between.

    All edges from one vertex share their points, as they carry the same tensor.

    Attributes:
        vertices: of the graph; the points have the numbers behind them.
        layer: of each vertex and point.
        above, below: the neighbours of each vertex and point on the layers beside its own.
        points: of each vertex the points that its edges pass, from the top.
    """

    vertices: int
    layer: Sequence[int]
    above: Sequence[Sequence[int]]
    below: Sequence[Sequence[int]]
    points: Sequence[Sequence[int]]

    def rows(self) -> list[list[int]]:
        """The vertices and points of each layer."""
        found: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for one, layer in enumerate(self.layer):
            found[layer].append(one)
        return found


def layered(shape: Shape, layer: Sequence[int]) -> Layered:
    """The graph with the points that its long edges pass."""
    layers = list(layer)
    above: list[list[int]] = [[] for _ in range(shape.vertices)]
    below: list[list[int]] = [[] for _ in range(shape.vertices)]
    points = []
    for vertex, targets in enumerate(shape.below):
        longest = max((layers[target] for target in targets), default=0) - layers[vertex] - 1
        chain = list(range(len(layers), len(layers) + max(0, longest)))
        points.append(chain)
        for depth, point in enumerate(chain):
            layers.append(layers[vertex] + depth + 1)
            above.append([vertex if depth == 0 else point - 1])
            below.append([])
            below[above[point][0]].append(point)
        for target in targets:
            depth = layers[target] - layers[vertex] - 1
            last = vertex if depth == 0 else chain[depth - 1]
            below[last].append(target)
            above[target].append(last)
    return Layered(vertices=shape.vertices, layer=layers, above=above, below=below, points=points)
