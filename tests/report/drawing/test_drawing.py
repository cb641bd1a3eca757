"""Drawings of graphs: everything stands below what it depends on, and nothing over anything else."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from smartmem_rules.report.drawing.drawing import Drawing, drawn
from smartmem_rules.report.drawing.layers import Shape, layers
from smartmem_rules.report.drawing.places import GAP, WIDTH


def random_shape(seed: int, vertices: int) -> Shape:
    """A graph like a network's: mostly a chain, with branches and edges that skip much."""
    chance = random.Random(seed)
    edges = []
    for target in range(1, vertices):
        near = chance.randrange(max(0, target - 4), target)
        edges.append((near, target))
        if chance.random() < 0.2:
            edges.append((chance.randrange(target), target))
    return Shape.of(vertices, edges)


def on_layers(drawing: Drawing) -> dict[int, list[int]]:
    """The middles of the vertices of each layer, from the left."""
    found: dict[int, list[int]] = {}
    for middle, layer in zip(drawing.middles, drawing.layers, strict=True):
        found.setdefault(layer, []).append(middle)
    return {layer: sorted(middles) for layer, middles in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_nothing_stands_over_anything_else_and_all_wires_run_down(seed: int) -> None:
    shape = random_shape(seed, 120)
    drawing = drawn(shape)
    assert all(drawing.layers[source] < drawing.layers[target] for source, target in shape.edges)
    for middles in on_layers(drawing).values():
        assert all(right - left >= WIDTH + GAP - 1 for left, right in pairwise(middles))
    assert min(drawing.middles) >= WIDTH // 2 - 1
    assert max(drawing.middles) <= drawing.width
    assert {(wire.source, target) for wire in drawing.wires for target in wire.targets} == set(shape.edges)
    for wire in drawing.wires:
        longest = max(drawing.layers[target] for target in wire.targets) - drawing.layers[wire.source] - 1
        assert len(wire.bends) == longest


def test_no_wire_runs_through_a_box() -> None:
    drawing = drawn(random_shape(7, 150))
    middles = on_layers(drawing)
    for wire in drawing.wires:
        for depth, bend in enumerate(wire.bends):
            layer = drawing.layers[wire.source] + depth + 1
            assert all(abs(bend - middle) >= WIDTH / 2 + GAP - 1 for middle in middles.get(layer, []))


def test_a_chain_is_a_straight_line() -> None:
    drawing = drawn(Shape.of(30, [(number, number + 1) for number in range(29)]))
    assert len(set(drawing.middles)) == 1
    assert drawing.layers == tuple(range(30))
    assert drawing.width == WIDTH


def test_wires_do_not_cross_where_they_need_not() -> None:
    # two chains that are named crosswise
    drawing = drawn(Shape.of(6, [(0, 3), (1, 2), (2, 4), (3, 5)]))
    left = [drawing.middles[vertex] for vertex in (0, 3, 5)]
    right = [drawing.middles[vertex] for vertex in (1, 2, 4)]
    assert (max(left) < min(right)) or (max(right) < min(left))


def test_what_is_read_late_stands_where_it_is_read() -> None:
    edges = [(number, number + 1) for number in range(9)] + [(10, 9)]
    assert layers(Shape.of(11, edges))[10] == layers(Shape.of(11, edges))[9] - 1


def test_the_same_graph_is_drawn_the_same() -> None:
    assert drawn(random_shape(3, 80)) == drawn(random_shape(3, 80))


def test_graphs_without_wires_or_vertices() -> None:
    assert drawn(Shape.of(0, [])).width == 0
    assert len(set(drawn(Shape.of(3, [])).middles)) == 3


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        drawn(Shape.of(2, [(0, 1), (1, 0)]))
