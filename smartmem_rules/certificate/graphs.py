"""Graphs as terms: the imported model, and the graph that a certificate says was made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smartmem_rules.certificate.terms import ABSENT, OPAQUE, VIEW, Refused, Terms, attribute_key, view_equation
from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation, TensorType, rename_reads
from smartmem_rules.tensor.instantiate import Instance, size_of
from smartmem_rules.tensor.views import IndexMap


@dataclass(frozen=True, kw_only=True)
class Made:
    """A node of the graph that was made; its attributes stand in the model where it is `opaque`, a node of that name.

    Attributes:
        map: of a view.
    """

    name: str
    operator: str
    operands: tuple[str | None, ...]
    attributes: Mapping[str, Value]
    outputs: tuple[str, ...]
    map: IndexMap | None = None


class ModelTerms:
    """The terms of a model's tensors, by name."""

    def __init__(self, graph: Graph, terms: Terms) -> None:
        self.graph = graph
        self.terms = terms
        self.numbers: dict[str, int] = {}
        self.nodes = {node.name: node for node in graph.nodes}
        for name in graph.inputs:
            self.numbers[name] = terms.input(name, graph.types[name])
        for name, array in graph.constants.items():
            self.numbers[name] = terms.constant(array, graph.types[name])
        for node in graph.nodes:
            self._add(node)
        self._uses = Counter(o for node in graph.nodes for o in node.operands if o is not None)
        self._uses.update(dict.fromkeys(graph.outputs, 1))
        self._equals: dict[int, list[str]] = {}

    def _add(self, node: Node) -> None:
        children = [ABSENT if o is None else self.numbers[o] for o in node.operands]
        count = len(node.outputs)
        if is_opaque(node, self.graph.types, self.terms):
            joint = self.terms.opaque(node.name, children, [self.graph.types[o] for o in node.outputs])
        else:
            joint = self.terms.application(node.operator, children, node.attributes, count)
        for place, output in enumerate(node.outputs):
            self.numbers[output] = self.terms.out(joint, place)

    def uses(self, number: int) -> frozenset[int]:
        """How many readers the model's tensors have that are equal to a term; one where there are none."""
        equal = [name for name, one in self.numbers.items() if self.terms.equal(one, number)]
        return frozenset(self._uses[name] for name in equal) or frozenset({1})


def is_opaque(node: Node, types: Mapping[str, TensorType], terms: Terms) -> bool:
    """Whether the rule base, asked without the model's opset, gives a node other equations than it has."""
    if node.operator == VIEW or attribute_key(node.attributes) != attribute_key(_known(node.attributes)):
        return True
    try:
        operand_types = [None if o is None else types[o] for o in node.operands]
        instance = terms.instances.get(node.operator, operand_types, _known(node.attributes), len(node.outputs))
    except Refused:
        return True
    counted = any(size_of(e) is not None for output in instance.operator.outputs for e in output.type.shape)
    return (
        counted or _renamed(instance, node.operands, node.outputs, [e.tensor for e in node.equations]) != node.equations
    )


def _known(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}


def _renamed(
    instance: Instance, operands: Sequence[str | None], outputs: Sequence[str], locals_: Sequence[str]
) -> tuple[Equation, ...]:
    """The equations of an instance over a graph's tensors; its own tensors take names in their order."""
    names = {output_name(place): output for place, output in enumerate(outputs)}
    names.update({operand_name(place): o for place, o in enumerate(operands) if o is not None})
    for equation, own in zip(instance.equations, locals_, strict=False):
        names.setdefault(equation.tensor, own)
    return tuple(
        replace(e, tensor=names.get(e.tensor, e.tensor), body=rename_reads(e.body, names)) for e in instance.equations
    )


class MadeGraph:
    """The graph that a certificate describes: its terms, and the equations of all of its tensors."""

    def __init__(self, model: ModelTerms, constants: Mapping[str, int]) -> None:
        self.model = model
        self.terms = model.terms
        self.constants = constants
        self.numbers = {name: model.numbers[name] for name in model.graph.inputs} | dict(constants)
        self.types = {name: self.terms.terms[number].type for name, number in self.numbers.items()}
        self.equations: dict[str, Equation] = {}
        self.node_of: dict[str, str] = {}

    def add(self, node: Made) -> None:
        """Take in a node; its operands are there already.

        Raises:
            Refused: an operand is unknown, a result is there already, or no definition takes the operands.
        """
        unknown = [o for o in node.operands if o is not None and o not in self.numbers]
        again = [o for o in node.outputs if o in self.numbers]
        if unknown or again:
            raise Refused(f"the node {node.name} reads the unknown tensor or makes again {', '.join(unknown + again)}")
        children = [ABSENT if o is None else self.numbers[o] for o in node.operands]
        if node.operator == VIEW:
            if node.map is None or len(children) != 1 or len(node.outputs) != 1 or node.operands[0] is None:
                raise Refused(f"the view {node.name} needs one operand, one result and an index map")
            joint = self.terms.view(children[0], node.map)
            dtype = self.types[node.operands[0]].dtype
            equations: tuple[Equation, ...] = (view_equation(node.outputs[0], node.operands[0], node.map, dtype),)
        elif node.operator == OPAQUE:
            joint, equations = self._opaque(node, children)
        else:
            joint = self.terms.application(node.operator, children, node.attributes, len(node.outputs))
            instance = self._instance(node)
            equations = _renamed(instance, node.operands, node.outputs, _locals(node.name, instance.equations))
        for place, output in enumerate(node.outputs):
            self.numbers[output] = self.terms.out(joint, place)
        for equation in equations:
            self.types[equation.tensor] = equation.type
            self.equations[equation.tensor] = equation
            self.node_of[equation.tensor] = node.name

    def _instance(self, node: Made) -> Instance:
        types = [None if o is None else self.types[o] for o in node.operands]
        return self.terms.instances.get(node.operator, types, _known(node.attributes), len(node.outputs))

    def _opaque(self, node: Made, children: Sequence[int]) -> tuple[int, tuple[Equation, ...]]:
        original = self.model.nodes.get(node.name)
        if original is None or len(original.outputs) != len(node.outputs):
            raise Refused(f"the model has no node {node.name} with {len(node.outputs)} results")
        joint = self.terms.opaque(node.name, children, [self.model.graph.types[o] for o in original.outputs])
        names = dict(zip(original.outputs, node.outputs, strict=True))
        pairs = zip(original.operands, node.operands, strict=False)
        names.update({old: new for old, new in pairs if old is not None and new is not None})
        for equation, own in zip(original.equations, _locals(node.name, original.equations), strict=True):
            names.setdefault(equation.tensor, own)
        renamed = [replace(e, tensor=names[e.tensor], body=rename_reads(e.body, names)) for e in original.equations]
        return joint, tuple(renamed)


def _locals(node: str, equations: Sequence[Equation]) -> list[str]:
    return [f"{node}.{equation.tensor.rsplit('.', 1)[-1]}" for equation in equations]
