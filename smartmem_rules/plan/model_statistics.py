"""What a plan remembers of the model that it was made from."""

from __future__ import annotations

from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.plan.kernel.storage import item_bytes
from smartmem_rules.statistics import ModelStatistics
from smartmem_rules.tensor.atoms import Gathered
from smartmem_rules.tensor.expr import own_indices, walk
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.primitives import device_dtype
from smartmem_rules.tensor.ranges import largest, smallest


def model_statistics(graph: Graph, dtype: str) -> ModelStatistics:
    """What a plan remembers of its model."""
    return ModelStatistics(
        operators=graph.operator_counts.total(),
        operator_types=dict(graph.operator_counts.most_common()),
        layout_operators=graph.layout_operators,
        bytes_moved_before=sum(_bytes(graph, node) for node in graph.nodes),
        tensor_bytes=tensor_bytes(graph, dtype),
        input_bounds=input_bounds(graph),
        data_files=graph.data_files,
        nodes={origin: node.operator for node in graph.nodes for origin in (node.origin or (node.name,))},
    )


def tensor_bytes(graph: Graph, dtype: str) -> int:
    """The bytes of all tensors between a model's operators, each in a buffer of its own; floats stored as `dtype`."""
    types = [graph.types[name] for node in graph.nodes for name in node.outputs if name not in graph.outputs]
    stored = {"float32": dtype, "float16": dtype, "bfloat16": dtype}
    return sum(largest(t.elements) * item_bytes(stored.get(t.dtype, device_dtype(t.dtype))) for t in types)


def _bytes(graph: Graph, node: Node) -> int:
    names = [*dict.fromkeys(name for name in node.operands if name is not None), *node.outputs]
    return sum(largest(graph.types[n].elements) * item_bytes(graph.types[n].dtype) for n in names if n in graph.types)


def input_bounds(graph: Graph) -> dict[str, int]:
    """For each integer input that is used as an index, how many values it can take."""
    bounds: dict[str, int] = {}
    for node in graph.nodes:
        if not any(operand in graph.inputs for operand in node.operands):
            continue
        for equation in node.equations:
            for expression in walk(equation.body):
                for index in own_indices(expression):
                    for atom in _gathered(index):
                        if atom.tensor in graph.inputs:
                            extent = smallest(atom.extent)
                            bounds[atom.tensor] = min(bounds.get(atom.tensor, extent), extent)
    return bounds


def _gathered(index: Index) -> list[Gathered]:
    return [atom for atom, _ in index.terms if isinstance(atom, Gathered)]
