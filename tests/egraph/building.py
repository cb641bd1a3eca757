"""Builds graphs for tests: from nodes, and from the left side of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import TensorType, rename_reads
from smartmem_rules.tensor.instantiate import instantiate
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

Array = np.ndarray[Any, np.dtype[Any]]
Spec = Mapping[str, Any]
"""For each pattern variable a shape (an input), an array (a constant) or another variable; for each attribute its
value.

`dtype` is that of the inputs, `OPERATOR` gives attributes to applications that name none, `parts` counts the outputs of
a split.
"""


@dataclass
class Builder:
    """A graph that grows node by node."""

    base: RuleBase
    graph: Graph = field(
        default_factory=lambda: Graph(name="test", nodes=[], types={}, constants={}, inputs=[], outputs=[])
    )

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> str:
        self.graph.inputs.append(name)
        self.graph.types[name] = TensorType(dtype, tuple(shape))
        return name

    def constant(self, name: str, array: Array) -> str:
        self.graph.constants[name] = array
        self.graph.types[name] = TensorType(str(array.dtype), array.shape)
        return name

    def add(self, operator: str, *operands: str | None, outputs: int = 1, **attributes: Value) -> str:
        """A node; gives the name of its first result (further ones are `NAME.1`, ...)."""
        types = [None if o is None else self.graph.types[o] for o in operands]
        instance = instantiate(self.base, operator, types, attributes, outputs)
        name = f"{operator}_{len(self.graph.nodes)}"
        results = tuple(f"{name}.{place}" for place in range(outputs))
        names = {output_name(place): result for place, result in enumerate(results)}
        names.update({operand_name(place): o for place, o in enumerate(operands) if o is not None})
        names.update({e.tensor: f"{name}.{e.tensor}" for e in instance.equations if e.tensor not in names})
        equations = tuple(
            replace(e, tensor=names[e.tensor], body=rename_reads(e.body, names)) for e in instance.equations
        )
        self.graph.types.update({e.tensor: e.type for e in equations})
        self.graph.nodes.append(Node(name, operator, operands, attributes, results, (name,), equations))
        return results[0]

    def finish(self, *outputs: str) -> Graph:
        self.graph.outputs.extend(outputs)
        return self.graph

    def pattern(self, pattern: ast.Pattern, spec: Spec) -> str | None:
        """The nodes of a pattern; equal sub-patterns become one node."""
        if isinstance(pattern, ast.PatternVariable):
            if pattern.name == "_":
                return None
            if pattern.name in self.graph.types:
                return pattern.name
            given = spec[pattern.name]
            if isinstance(given, str):
                return given
            if isinstance(given, np.ndarray):
                return self.constant(pattern.name, given)
            return self.input(pattern.name, given, spec.get("dtype", "float32"))
        if isinstance(pattern, ast.PatternNumber):
            name = f"number_{pattern.value}"
            return self.constant(name, np.array(pattern.value, np.float32))
        assert isinstance(pattern, ast.PatternOperator)
        operands = [self.pattern(a, spec) for a in pattern.arguments]
        attributes: dict[str, Value] = dict(spec.get(f"@{pattern.bundle}", {})) if pattern.bundle else {}
        if not pattern.attributes:
            attributes |= spec.get(pattern.operator, {})
        attributes |= {a.name: given for a in pattern.attributes if (given := attribute_value(a, spec)) is not None}
        if pattern.operator == "Split":
            return self._split(operands, attributes, pattern.output or 0, int(spec["parts"]))
        for node in self.graph.nodes:
            if (node.operator, node.operands, node.attributes) == (pattern.operator, tuple(operands), attributes):
                return node.outputs[0]
        return self.add(pattern.operator, *operands, **attributes)

    def _split(self, operands: list[str | None], attributes: dict[str, Value], output: int, parts: int) -> str:
        known = next((n for n in self.graph.nodes if n.operator == "Split" and list(n.operands) == operands), None)
        if known is None:
            self.add("Split", *operands, outputs=parts, **attributes)
            known = self.graph.nodes[-1]
        return known.outputs[output]


def attribute_value(attribute: ast.PatternAttribute, spec: Spec) -> Value:
    value = attribute.value
    if isinstance(value, ast.Name):
        found: Value = spec.get(value.id)
        return found
    assert isinstance(value, ast.Number | ast.Text)
    return value.value


def run(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a graph by the reference interpreter."""
    known: dict[str, Array] = {**graph.constants, **feeds}
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    return [known[output] for output in graph.outputs]


def feeds_of(graph: Graph, signed: bool = False, seed: int = 0) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for name in graph.inputs:
        type_ = graph.types[name]
        values = random.uniform(0.5, 1.5, type_.shape)
        if type_.dtype == "bool":
            feeds[name] = values > 1
            continue
        feeds[name] = (values * random.choice([-1, 1], type_.shape) if signed else values).astype(type_.dtype)
    return feeds
