"""The nodes of an ONNX model by the names that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_rules.explanation.report import FileNode
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.graph.model import Graph


def file_nodes(model: ModelSource | Graph | None) -> dict[str, FileNode]:
    """All nodes of an ONNX model by name; an unnamed one is called as the importer calls it."""
    if model is None or is_graph(model):
        return {}
    from smartmem_rules.explanation.report import FileNode  # start-up time
    from smartmem_rules.graph.loading import load_model, needed_tensors  # start-up time

    proto, _ = load_model(model)  # type: ignore[arg-type]
    needed = needed_tensors(proto.graph)
    return {
        node.name or f"{node.op_type}_{place}": FileNode(node.op_type, not needed.isdisjoint(node.output))
        for place, node in enumerate(proto.graph.node)
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
