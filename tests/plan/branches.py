"""Two branches of unlike kernels, which meet at the end."""

from __future__ import annotations

from tests.plan.models import Node, normal

BRANCHES: list[Node] = [
    ("MatMul", "x u", "a"),
    ("Softmax", "a", "s"),
    ("MatMul", "s w", "b"),
    ("Conv", "z k", "c", {"pads": [1, 1, 1, 1]}),
    ("Relu", "c", "d"),
    ("MatMul", "d v", "e"),
]
CONSTANTS = {"u": normal(40, 130), "w": normal(130, 70), "k": normal(24, 8, 3, 3), "v": normal(11, 9)}
FEEDS = {"x": normal(50, 40), "z": normal(1, 8, 13, 11, seed=3)}
