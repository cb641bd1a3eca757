"""The graph that every stage before the plan works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from dataclasses import field

import numpy as np

from smartmem_rules.graph.endings import Endings
from smartmem_rules.graph.errors import GraphError as GraphError
from smartmem_rules.graph.printer import graph_text, node_text
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation, TensorType
from smartmem_rules.tensor.extents import Dimension

VIEW = "View"
"""The engine's own operator: one operand read through an index map (attribute `map`, an `IndexMap`)."""


EXTENTS = "Extents"
"""The engine's own operator without operands: a tensor whose elements are extents that the inputs decide."""

OPENED = "Opened"
"""The engine's own operator: a tensor cut to extents that are counted while the model runs."""


@dataclass(frozen=True)
class Counted:
    """An open dimension that a run counts itself.

    Attributes:
        dimension: its values begin with 0.
        tensor: the scalar tensor (int64) that holds its extent.
    """

    dimension: Dimension
    tensor: str


@dataclass(frozen=True)
class OpenElements:
    """A known tensor some elements of which are open extents.

    Attributes:
        array: of objects, numbers and extents.
        dtype: the element type that the tensor has in the model.
    """

    array: np.ndarray
    dtype: str


@dataclass(frozen=True)
class Node:
    """One operator application.

    `operands` are the run-time operands only, None for an absent optional one; what an operator needs at compile time
    (`const` inputs of its definition) stands in `attributes`.  `origin` names the ONNX nodes that it stands for.
    """

    name: str
    operator: str
    operands: tuple[str | None, ...]
    attributes: dict[str, Value] = field(hash=False)
    outputs: tuple[str, ...]
    origin: tuple[str, ...] = ()
    equations: tuple[Equation, ...] = field(default=(), compare=False, repr=False)
    """The instance's equations over the graph's tensor names; local tensors are named `node.local`."""

    def __str__(self) -> str:
        return node_text(self)


@dataclass(kw_only=True)
class Graph:
    """Nodes in topological order, with the type of every tensor and the values of the constant ones."""

    name: str
    nodes: list[Node]
    types: dict[str, TensorType]
    constants: MutableMapping[str, np.ndarray]
    """Large ones that a model only describes are computed when they are asked for (`described.Tensors`)."""
    inputs: list[str]
    outputs: list[str]
    operator_counts: Counter[str] = field(default_factory=Counter)
    """Operators of the ONNX model by type, constants not counted."""
    layout_operators: int = 0
    """How many nodes of the ONNX model only move elements (their definition is a view or has no arithmetic)."""
    sizes: dict[str, dict[int, str]] = field(default_factory=dict)
    """Of outputs with an extent that depends on data: the axis, and the scalar tensor that holds the extent.
    These scalars stand at the end of `outputs`."""
    endings: Endings | None = None
    """Loops that a run may not have ended; the scalar that tells stands at the end of `outputs`, too."""
    kept: frozenset[str] = frozenset()
    """Results of operators of constants that `keep` rules leave to the run."""
    known: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """Small tensors of the model whose values were known at import, those that nodes took as attributes among them."""
    extents: dict[str, OpenElements] = field(default_factory=dict, repr=False)
    """The tensors of the model of which some elements are open extents."""
    part: int = 0
    """Which part of a graph that was taken apart it is, from 0 on; the kernels of later ones are named after it."""
    dimensions: tuple[Dimension, ...] = ()
    """The dimensions for a range of which the graph stands, those of its inputs."""
    counted: tuple[Counted, ...] = ()
    """The dimensions that a run counts; such a graph is taken apart (`graph.counting.parts`) before it is planned."""
    data_files: tuple[str, ...] = ()
    """The files in the folder of the ONNX model that hold weights."""
    instances: Instances | None = field(default=None, compare=False, repr=False)
    """What its nodes are, of the rule base by which it was imported."""

    def __str__(self) -> str:
        return graph_text(self)

    def stays_packed(self, deferred: Collection[str] = ()) -> set[str]:
        """The constants that only the run may compute with: operands of what rules keep.

        Args:
            deferred: operators that rules keep until the plan is made.
        """
        nodes = (node for node in self.nodes if node.operator not in deferred)
        kept = (node for node in nodes if not self.kept.isdisjoint(node.outputs))
        return {operand for node in kept for operand in node.operands if operand is not None}

    def producers(self) -> dict[str, Node]:
        return {output: node for node in self.nodes for output in node.outputs}

    def consumers(self) -> dict[str, list[Node]]:
        users: dict[str, list[Node]] = {}
        for node in self.nodes:
            for operand in dict.fromkeys(node.operands):
                if operand is not None:
                    users.setdefault(operand, []).append(node)
        return users


def live_nodes(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    """The nodes that the outputs depend on, in their order."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(name for name in node.operands if name is not None)
    return kept[::-1]
