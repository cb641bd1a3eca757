"""The graphs of a report, drawn: the model with and without what import computed, and the launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from smartmem_rules.records import dataclass
from smartmem_rules.report.drawing.drawing import drawn
from smartmem_rules.report.drawing.layers import Shape

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.report.documents import ReportedPlan

_RUNS = ("computed", "view")
"""The kinds of nodes that are there when the model runs."""


@dataclass(frozen=True, kw_only=True)
class _Vertex:
    """What is drawn as a box.

    Attributes:
        kind: `node` or `launch`, with its number in the plan's data; `input` or `output`, with that of its name.
    """

    kind: str
    number: int
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


def drawings(plan: ReportedPlan) -> dict[str, object]:
    """The drawings of a plan, by name.

    Args:
        plan: the data of a plan, as `plan_data` gives it.

    Returns `model` without and `whole` with the nodes that no run computes, each null where the model's tensors are
    not known, and `launches`. ONNX's Constant nodes are values and drawn as little as initialisers.
    """
    nodes = list(_vertices("node", [(one["inputs"], one["outputs"]) for one in plan["nodes"]]))
    launches = list(_vertices("launch", [(one["reads"], one["writes"]) for one in plan["launches"]]))
    known = any(one.writes for one in nodes)
    nodes = [one for one in nodes if plan["nodes"][one.number]["operator"] != "Constant"]
    return {
        "model": _drawing(plan, [one for one in nodes if plan["nodes"][one.number]["kind"] in _RUNS], known),
        "whole": _drawing(plan, nodes, known),
        "launches": _drawing(plan, launches, True),
    }


def _vertices(kind: str, found: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Iterable[_Vertex]:
    for number, (reads, writes) in enumerate(found):
        yield _Vertex(kind=kind, number=number, reads=reads, writes=writes)


def _drawing(plan: ReportedPlan, inner: Sequence[_Vertex], known: bool) -> dict[str, object] | None:
    if not known:
        return None
    inputs = [_Vertex(kind="input", number=place, writes=(name,)) for place, name in enumerate(plan["inputs"])]
    outputs = [_Vertex(kind="output", number=place, reads=(name,)) for place, name in enumerate(plan["outputs"])]
    vertices = [*inputs, *inner, *outputs]
    drawing = drawn(Shape.of(len(vertices), _edges(vertices)))
    return {**drawing.data(), "vertices": [{"kind": one.kind, "number": one.number} for one in vertices]}


def _edges(vertices: Sequence[_Vertex]) -> Iterable[tuple[int, int]]:
    """From the vertex that writes a tensor to those that read it; of several writers the one before the reader."""
    first: dict[str, int] = {}
    for number, vertex in enumerate(vertices):
        for tensor in vertex.writes:
            first.setdefault(tensor, number)
    last: dict[str, int] = {}
    for number, vertex in enumerate(vertices):
        for tensor in vertex.reads:
            writer = last.get(tensor, first.get(tensor))
            if writer is not None:
                yield writer, number
        last.update(dict.fromkeys(vertex.writes, number))
