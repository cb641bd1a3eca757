"""Several forms of one model: terms that rules make equal, each extracted with costs that chance gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import onnx
import onnx.printer

from smartmem_rules.egraph.model import CONSTANT, IMPORTED, INPUT, OUT, EClass, ENode, Saturation
from smartmem_rules.egraph.saturation import Bounds, saturate
from smartmem_rules.extraction.extract import is_leaf, leaf_key
from smartmem_rules.extraction.problem import Choice, Infeasible, Problem, selected_order
from smartmem_rules.extraction.rebuild import rebuild
from smartmem_rules.extraction.solve import by_tree_cost
from smartmem_rules.fuzzing.equal.rules import RULESETS
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import VIEW, Graph
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.writing.expressing import express, is_expressible
from smartmem_rules.writing.views import NotExpressible

BOUNDS = Bounds(enodes=6000, seconds=2.0, iterations=6)
_TRIES = 8
"""Extractions for each form that is wanted: chance often gives the same again."""
_MADE_BY_RULES = 0.02
"""What an e-node of a rule costs beside one of the model: forms that differ are wanted."""


@dataclass(frozen=True)
class Form:
    """A model that computes the same as another one.

    Attributes:
        rules: those that made the e-nodes of it.
    """

    model: onnx.ModelProto
    rules: tuple[str, ...]


class Forms:
    """The e-graph of a model, and what is extracted from it."""

    def __init__(self, model: onnx.ModelProto, base: RuleBase) -> None:
        """Raises:
        GraphError: the model cannot be imported.
        """
        self.model = model
        self.base = base
        self.graph: Graph = import_model(model, base, fold_outputs=False)
        rulesets = [*RULESETS, RULESETS[0]]
        self.saturation: Saturation = saturate(self.graph, base, rulesets, bounds=BOUNDS)
        self.opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))

    @cached_property
    def usable(self) -> Mapping[int, list[tuple[int, ENode]]]:
        """The e-nodes of each class that ONNX has an operator for."""
        return {
            number: [(place, node) for place, node in enumerate(eclass.nodes) if self._is_usable(node)]
            for number, eclass in self.saturation.classes.items()
        }

    def _is_usable(self, node: ENode) -> bool:
        if node.operator in (INPUT, CONSTANT, OUT, VIEW):
            return True
        overloads = self.base.operators.get(node.operator, ())
        return node.operator != IMPORTED and any(is_expressible(overload) for overload in overloads)

    def draw(self, count: int, seed: int) -> Iterator[Form]:
        """Up to `count` forms that differ from each other and from the model."""
        random = np.random.default_rng((seed, 7))
        seen = {_shape_of(self.graph)}
        written: set[str] = set()
        for _ in range(_TRIES * count):
            if len(written) >= count:
                return
            selection = self._selection(random)
            if selection is None:
                return
            graph = rebuild(self.saturation, self.graph, selection, self._roots())
            shape = _shape_of(graph)
            if shape in seen:
                continue
            seen.add(shape)
            try:
                model = express(graph, self.saturation.instances, self.opset)
            except NotExpressible:
                continue
            text = onnx.printer.to_text(model.graph)
            if text not in written:  # a view may be written as the operator that it is
                written.add(text)
                yield Form(model, self._rules(selection))

    def _roots(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.saturation.tensor_class[name] for name in self.graph.outputs))

    def _selection(self, random: np.random.Generator) -> dict[int, int] | None:
        choices = {n: self._choices(n, eclass, random) for n, eclass in self.saturation.classes.items()}
        problem = Problem(choices, self._roots())
        chosen = by_tree_cost(problem)
        if any(root not in chosen for root in problem.roots):
            return None
        try:
            needed = selected_order(problem.roots, chosen)
        except Infeasible:
            return None
        return {number: chosen[number].key for number in needed}

    def _choices(self, number: int, eclass: EClass, random: np.random.Generator) -> list[Choice]:
        if is_leaf(eclass):
            return [Choice(0.0, (), leaf_key(eclass))]
        return [
            Choice(
                float(10.0 ** random.uniform(-3, 3)) * (_MADE_BY_RULES if node.rules else 1.0),
                tuple(child for child in node.children if child >= 0),
                place,
            )
            for place, node in self.usable[number]
        ]

    def _rules(self, selection: Mapping[int, int]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for number, place in selection.items():
            eclass = self.saturation.classes[number]
            if not is_leaf(eclass):
                found.update(dict.fromkeys(eclass.nodes[place].rules))
        return tuple(found)


def _shape_of(graph: Graph) -> str:
    """The operators of a graph with what they read, whatever its tensors are called."""
    places = {name: str(place) for place, name in enumerate(graph.inputs)}
    lines = []
    for node in graph.nodes:
        operands = [places.get(o or "", "constant") for o in node.operands]
        lines.append(f"{node.operator} {operands} {sorted(node.attributes.items(), key=lambda item: item[0])}")
        places.update({output: f"{len(lines)}.{k}" for k, output in enumerate(node.outputs)})
    return "\n".join([*lines, *(places.get(o, "constant") for o in graph.outputs)])
