"""The nodes of an ONNX model by the names that users give."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from smartmem_rules.arguments import MODEL, Kind

if TYPE_CHECKING:
    from onnx import GraphProto

    from smartmem_rules.explanation.fates import FileNode
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph


def file_nodes(model: ModelSource | Graph | None) -> dict[str, FileNode]:
    """All nodes of an ONNX model by name; an unnamed one is called as the importer calls it."""
    if model is None or is_graph(model):
        return {}
    from smartmem_rules.graph.expansion.local_functions import inline_functions  # start-up time
    from smartmem_rules.graph.loading import load_model  # start-up time

    proto, _ = load_model(model)  # type: ignore[arg-type]
    inlined = inline_functions(proto)
    nodes = _nodes_of(inlined.graph)
    if inlined is not proto:  # a call of a function is none of the nodes that stand for it
        kinds = {(function.domain, function.name) for function in proto.functions}
        calls = _nodes_of(proto.graph, kinds)
        nodes |= {name: node for name, node in calls.items() if node.has_body and name not in nodes}
    return nodes


def _nodes_of(graph: GraphProto, functions: Collection[tuple[str, str]] = ()) -> dict[str, FileNode]:
    from smartmem_rules.explanation.fates import FileNode  # start-up time
    from smartmem_rules.graph.expansion.bodies import has_body  # start-up time
    from smartmem_rules.graph.loading import needed_tensors, node_inputs  # start-up time

    needed = needed_tensors(graph)
    return {
        node.name or f"{node.op_type}_{place}": FileNode(
            operator=node.op_type,
            is_needed=not needed.isdisjoint(node.output),
            has_body=has_body(node) or (node.domain, node.op_type) in functions,
            domain=node.domain,
            inputs=tuple(dict.fromkeys(node_inputs(node))),
            outputs=tuple(filter(None, node.output)),
        )
        for place, node in enumerate(graph.node)
    }


def node_of(model: ModelSource | Graph, asked: str) -> str:
    """The node that is meant: the one of this name, or the one that computes the tensor of this name."""
    if is_graph(model):
        return asked
    from smartmem_rules.graph.loading import load_model  # start-up time

    proto, _ = load_model(model)  # type: ignore[arg-type]
    named = [(node.name or f"{node.op_type}_{place}", node) for place, node in enumerate(proto.graph.node)]
    if any(name == asked for name, _ in named):
        return asked
    return next((name for name, node in named if asked in node.output), asked)


def is_graph(source: Any) -> bool:
    """Whether a model was imported already."""
    from smartmem_rules.graph.model import Graph  # start-up time

    return isinstance(source, Graph)


GRAPH = Kind(f"{MODEL.what}, or a Graph", lambda value: MODEL.takes(value) or is_graph(value))
"""What models are given as."""
