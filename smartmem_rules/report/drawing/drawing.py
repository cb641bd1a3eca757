"""A graph as it is drawn."""

from __future__ import annotations

from smartmem_rules.records import dataclass
from smartmem_rules.report.drawing.layers import Shape, layers
from smartmem_rules.report.drawing.order import ordered
from smartmem_rules.report.drawing.places import WIDTH, placed
from smartmem_rules.report.drawing.wires import layered


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What leaves a vertex.

    Attributes:
        bends: where it passes the layers below the vertex, in pixels from the left.
        targets: the vertices where it ends.
    """

    source: int
    bends: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawn graph.

    Attributes:
        middles: of the vertices, in pixels from the left.
        layers: of the vertices, the topmost 0.
        width: of everything, in pixels.
    """

    middles: tuple[int, ...]
    layers: tuple[int, ...]
    wires: tuple[Wire, ...]
    width: int

    def data(self) -> dict[str, object]:
        """The content for JSON."""
        return {
            "middles": list(self.middles),
            "layers": list(self.layers),
            "wires": [{"source": one.source, "bends": one.bends, "targets": one.targets} for one in self.wires],
            "width": self.width,
            "box": WIDTH,
        }


def drawn(shape: Shape) -> Drawing:
    """Draw a graph.

    Raises:
        ValueError: it has a circle.
    """
    graph = layered(shape, layers(shape))
    middles = placed(graph, ordered(graph))
    return Drawing(
        middles=tuple(middles[: shape.vertices]),
        layers=tuple(graph.layer[: shape.vertices]),
        wires=tuple(
            Wire(source=vertex, bends=tuple(middles[point] for point in graph.points[vertex]), targets=tuple(targets))
            for vertex, targets in enumerate(shape.below)
            if targets
        ),
        width=max((middle + WIDTH // 2 for middle in middles), default=0),
    )
