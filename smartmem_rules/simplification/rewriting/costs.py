"""What each e-node costs as a part of an ONNX model, None for what cannot be written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from smartmem_rules.egraph.model import CONSTANT, IMPORTED, INPUT, OUT, EClass, ENode, Saturation
from smartmem_rules.extraction.cost import CostModel, operand_types, size_in_bytes
from smartmem_rules.extraction.extract import is_leaf, leaf_key
from smartmem_rules.extraction.problem import Choice
from smartmem_rules.graph.model import VIEW
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.blocks.export import Export
from smartmem_rules.records import dataclass
from smartmem_rules.simplification.rewriting.extents import holds_open
from smartmem_rules.tensor.builtins import Unsupported, Value, integers
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import at, dimensions, is_symbolic
from smartmem_rules.tensor.views import IndexMap, keeps_order
from smartmem_rules.writing.expressing import STANDARD, is_expressible, is_operand, least_opset, name_of
from smartmem_rules.writing.views import NotExpressible, shape_in_numbers, view_steps

_RESHAPE = "Reshape"
MOST_NODES = 16
"""Of an operator that is written as several."""
MOST_PLACES = 1
"""What a view may gather: one place of an axis; a table of places is slower than the operators that it stands for."""


@dataclass
class _Together:
    """E-nodes of the model that the system computes as one operator.

    Attributes:
        nodes: by class and place. They cost nothing, so that no form without one of them is cheaper.
        inner: the classes of what such an operator keeps to itself. What else reads one takes the operator apart.
    """

    nodes: set[tuple[int, int]] = field(default_factory=set)
    inner: set[int] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True)
class WrittenCosts:
    """The costs of a model that is written back.

    Attributes:
        opset: the version of the standard operators that it uses.
        domains: those of other operators that rules may make.
    """

    saturation: Saturation
    export: Export
    opset: int
    domains: Collection[str]

    def choices(self) -> dict[int, list[Choice]]:
        """The ways to write each class."""
        found: dict[int, list[Choice]] = {}
        together = self._together()
        for number, eclass in self.saturation.classes.items():
            if is_leaf(eclass):
                found[number] = [Choice(self._leaf_cost(eclass), (), leaf_key(eclass))]
                continue
            reshaped = {node.children for node in eclass.nodes if _keeps_order(node)}
            found[number] = [
                Choice(cost, tuple(child for child in node.children if child >= 0), place)
                for place, node in enumerate(eclass.nodes)
                for cost in (self._cost_beside(together, number, place, node.children in reshaped),)
                if cost is not None
            ]
        return found

    def _cost_beside(self, together: _Together, number: int, place: int, reshapes: bool) -> float | None:
        """The cost of an e-node: nothing where it is computed with others, more where it takes such others apart."""
        if (number, place) in together.nodes:
            return 0.0
        eclass = self.saturation.classes[number]
        node = eclass.nodes[place]
        cost = self._cost(node, eclass, reshapes)
        apart = together.inner.isdisjoint(node.children)
        return cost if cost is None or apart else cost + MOST_NODES * self.export.node

    def _together(self) -> _Together:
        """What the system computes as one operator, where the model's operators have none that could be written."""
        found = _Together()
        for number, eclass in self.saturation.classes.items():
            for node in eclass.nodes:
                fused = node.rules and node.operator in self.export.fused
                if fused and self._cost(node, eclass, False) is None:
                    nodes = self._written_as(number, node)
                    found.nodes |= nodes
                    found.inner |= {inner for inner, _ in nodes} - {number}
        return found

    def _written_as(self, number: int, fused: ENode) -> set[tuple[int, int]]:
        """The model's own e-nodes between the operands of an operator and the class of its result."""
        pending, seen, found = [number], {number, *fused.children}, set[tuple[int, int]]()
        while pending:
            current = pending.pop()
            for place, node in enumerate(self.saturation.classes[current].nodes):
                if node.rules or node.operator in (INPUT, CONSTANT, OUT):
                    continue
                found.add((current, place))
                pending += [child for child in node.children if child >= 0 and child not in seen]
                seen.update(node.children)
            if len(found) > MOST_NODES:  # it does not end at the operands
                return set()
        return found

    def _leaf_cost(self, eclass: EClass) -> float:
        meta = eclass.meta
        if meta is None or meta.constant is None:
            return 0.0
        return size_in_bytes(meta.type) * self.export.stored

    def _cost(self, node: ENode, eclass: EClass, reshapes: bool) -> float | None:
        """The cost of an e-node by itself.

        Args:
            reshapes: whether what it gives has the elements of its operand in their order, so that no byte moves.
        """
        if node.operator in (INPUT, CONSTANT, OUT):
            return 0.0
        if node.operator == VIEW:
            return self._view_cost(node, eclass)
        if node.operator == IMPORTED:
            return self.export.node
        operands = operand_types(node, self.saturation.classes)
        attributes: dict[str, Value] = dict(node.attributes)  # type: ignore[arg-type]
        try:
            instance = self.saturation.instances.get(node.operator, operands, attributes, node.outputs)
        except Unsupported:
            return None
        cost = self.export.node if reshapes else self._model.cost(operands, instance.equations, node.outputs)
        if any(map(holds_open, attributes.values())):
            open_cost = self._open_cost(node, operands, instance.operator)
            if open_cost is None:
                return None
            cost += open_cost
        if not node.rules:
            return cost
        operator = instance.operator
        if not is_expressible(operator) or operator.name in self.export.composed:
            return None
        domain, _ = name_of(operator)
        try:
            if domain not in STANDARD and domain not in self.domains:
                return None
            if least_opset(operator, self.opset) != self.opset:
                return None
        except NotExpressible:
            return None
        return self.export.made + cost

    def _open_cost(self, node: ENode, operands: Sequence[TensorType | None], operator: ast.Operator) -> float | None:
        """What the open extents of a node's attributes cost beside it; None where only numbers may stand there."""
        open_ = [name for name, value in node.attributes.items() if holds_open(value)]
        source = operands[0] if operands else None
        if operator.name == _RESHAPE and source is not None and open_ == ["shape"]:
            shape: Value = node.attributes["shape"]  # type: ignore[assignment]  # no index map
            if shape_in_numbers(source.shape, integers(shape)) is not None:
                return 0.0
        if node.rules and not all(is_operand(name, operator, self.opset) for name in open_):
            return None
        return self.export.node

    def _view_cost(self, node: ENode, eclass: EClass) -> float | None:
        map_ = node.attributes["map"]
        assert isinstance(map_, IndexMap)
        assert eclass.meta is not None
        try:
            steps = view_steps(map_)
        except NotExpressible:
            return None
        if any(step.places > MOST_PLACES or step.least > self.opset for step in steps):
            return None
        moving = sum(step.operator != "Reshape" for step in steps)
        moved = 2 * moving * size_in_bytes(eclass.meta.type, self._count) / self.export.bandwidth
        return self.export.made + len(steps) * self.export.node + moved

    @property
    def _model(self) -> CostModel:
        export = self.export
        return CostModel(
            bandwidth=export.bandwidth,
            launch=export.node,
            peak=export.peak,
            special=int(export.special),
            count=self._count,
        )

    def _count(self, extent: int) -> int:
        """What an extent counts as where forms are compared."""
        if not is_symbolic(extent):
            return extent
        return int(at(extent, {dimension.name: int(self.export.usual) for dimension in dimensions(extent)}))


def _keeps_order(node: ENode) -> bool:
    if node.operator != VIEW:
        return False
    map_ = node.attributes["map"]
    assert isinstance(map_, IndexMap)
    return keeps_order(map_)
