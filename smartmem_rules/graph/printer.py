"""The text form of a graph: one line for each node, and its equations below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from smartmem_rules.graph.model import Graph, Node

_SHOWN = 8
"""Elements up to which a constant's values are shown."""


def graph_text(graph: Graph) -> str:
    """The inputs, constants, nodes in their order with their equations, and outputs, with the types of all tensors."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"graph {graph.name}"
    for dimension in graph.dimensions:
        yield f"  dimension {dimension}"
    for name in graph.inputs:
        yield f"  input {name} : {graph.types[name]}"
    for name, array in graph.constants.items():
        yield f"  constant {name} : {graph.types[name]}{_values(array)}"
    for node in graph.nodes:
        yield f"  {node_text(node, graph)}"
        yield from (f"    {equation}" for equation in node.equations)
    for name in graph.outputs:
        known = graph.sizes.get(name, {})
        sizes = "".join(f", axis {axis} has {count} elements" for axis, count in known.items())
        yield f"  output {name} : {graph.types[name]}{sizes}"


def node_text(node: Node, graph: Graph | None = None) -> str:
    """`y : float32[2, 3] = Softmax(x) {axis: 1}   # name, from ONNX nodes`."""
    outputs = [f"{n} : {graph.types[n]}" if graph is not None and n in graph.types else n for n in node.outputs if n]
    operands = ", ".join("-" if name is None else name for name in node.operands)
    attributes = attributes_text(node.attributes)
    origin = "" if node.origin in ((), (node.name,)) else f", from {', '.join(node.origin)}"
    return f"{', '.join(outputs)} = {node.operator}({operands}){attributes}   # {node.name}{origin}"


def attributes_text(attributes: Mapping[str, object]) -> str:
    """` {axis: 1, perm: [1, 0]}`, empty where there are none."""
    shown = [f"{name}: {_value(value)}" for name, value in attributes.items() if value is not None]
    return f" {{{', '.join(shown)}}}" if shown else ""


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}{_values(value)}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


def _values(array: np.ndarray) -> str:
    if array.size > _SHOWN:
        return ""
    return " = " + str(array.tolist())
