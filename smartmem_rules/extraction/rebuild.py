"""Turns a selection of e-nodes back into a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.egraph.model import INPUT, OUT, ENode, Saturation
from smartmem_rules.graph.model import VIEW, Graph, Node
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation, Read, TensorType, rename_reads
from smartmem_rules.tensor.instantiate import operand_name, output_name
from smartmem_rules.tensor.views import IndexMap, identity


def rebuild(saturation: Saturation, graph: Graph, selection: Mapping[int, int], roots: Sequence[int]) -> Graph:
    """The graph of the selected e-nodes, with the model's own names where a tensor is one of the model."""
    return _Rebuild(saturation, graph, selection).run(roots)


class _Rebuild:
    def __init__(self, saturation: Saturation, graph: Graph, selection: Mapping[int, int]) -> None:
        self.saturation = saturation
        self.graph = graph
        self.selection = selection
        self.taken: set[str] = set(graph.types) | {node.name for node in graph.nodes}
        self.names: dict[int, str] = {}
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {name: graph.types[name] for name in graph.inputs}
        self.constants: dict[str, np.ndarray] = {}
        self.producers = graph.producers()

    def run(self, roots: Sequence[int]) -> Graph:
        order = self._order(roots)
        self._name_classes(order)
        for number in order:
            self._class(number)
        self._missing_outputs()
        self._origins()
        graph = self.graph
        return replace(
            graph, nodes=self.nodes, types=self.types, constants=self.constants, operator_counts=graph.operator_counts
        )

    def node(self, number: int) -> ENode:
        return self.saturation.classes[number].nodes[self.selection[number]]

    def is_constant(self, number: int) -> bool:
        meta = self.saturation.classes[number].meta
        return meta is not None and meta.constant is not None

    def _order(self, roots: Sequence[int]) -> list[int]:
        """The needed classes, children first."""
        order: list[int] = []
        seen: set[int] = set()
        for root in roots:
            stack = [(root, False)]
            while stack:
                number, done = stack.pop()
                if done:
                    order.append(number)
                elif number not in seen:
                    seen.add(number)
                    stack.append((number, True))
                    if not self.is_constant(number):
                        children = [c for c in self.node(number).children if c >= 0 and c not in seen]
                        stack.extend((child, False) for child in reversed(children))
        return order

    # --- names ---

    def fresh(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def _name_classes(self, order: Sequence[int]) -> None:
        """An output keeps its name, an input its own, any other tensor one that the model has for it."""
        outputs = dict.fromkeys(self.graph.outputs)
        for number in order:
            tensors = self.saturation.classes[number].tensors
            given = [t for t in tensors if t in self.graph.inputs]
            wanted = [t for t in outputs if t in tensors]
            kept = given or wanted or list(tensors)
            if kept:
                self.names[number] = kept[0]

    def _tensor(self, number: int, operator: str) -> str:
        if number not in self.names:
            self.names[number] = self.fresh(f"{operator}.result")
        return self.names[number]

    # --- nodes ---

    def _class(self, number: int) -> None:
        eclass = self.saturation.classes[number]
        if self.is_constant(number):
            assert eclass.meta is not None and eclass.meta.constant is not None
            name = self._tensor(number, "constant")
            self.constants[name] = self.saturation.constants.array(eclass.meta.constant)
            self.types[name] = eclass.meta.type
            return
        node = self.node(number)
        if node.operator == INPUT:
            return
        if node.operator == OUT:
            place = node.attributes["index"]
            assert isinstance(place, int) and eclass.meta is not None
            joint = node.children[0]
            self._joint(joint)[place] = number
            return
        if eclass.meta is None:
            return
        if node.operator == VIEW:
            self._view(number, node)
        else:
            self._application(node, {0: number})

    def _joint(self, number: int) -> dict[int, int]:
        raise NotImplementedError

    def _view(self, number: int, node: ENode) -> None:
        raise NotImplementedError

    def _application(self, node: ENode, outputs: dict[int, int]) -> None:
        raise NotImplementedError

    def _missing_outputs(self) -> None: ...

    def _origins(self) -> None: ...
