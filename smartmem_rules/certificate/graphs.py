"""Graphs as terms: the imported model, and the graph that a certificate says was made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from smartmem_rules.certificate.terms import ABSENT, OPAQUE, VIEW, Refused, Terms, view_equation
from smartmem_rules.graph.equations import is_opaque, local_names, over_graph, renamed_equations
from smartmem_rules.graph.model import Graph, Node
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation
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

    def _add(self, node: Node) -> None:
        children = [ABSENT if o is None else self.numbers[o] for o in node.operands]
        count = len(node.outputs)
        if is_opaque(node, self.graph.types, self.terms.instances):
            joint = self.terms.opaque(node.name, children, [self.graph.types[o] for o in node.outputs])
        else:
            joint = self.terms.application(node.operator, children, node.attributes, count)
        for place, output in enumerate(node.outputs):
            self.numbers[output] = self.terms.out(joint, place)

    def uses(self, number: int) -> frozenset[int]:
        """How many readers the model's tensors have that are equal to a term; one where there are none."""
        equal = [name for name, one in self.numbers.items() if self.terms.equal(one, number)]
        return frozenset(self._uses[name] for name in equal) or frozenset({1})


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
            own = self.terms.instance_of(self.terms.terms[joint]).equations
            equations = over_graph(own, node.operands, node.outputs, local_names(node.name, own))
        for place, output in enumerate(node.outputs):
            self.numbers[output] = self.terms.out(joint, place)
        for equation in equations:
            self.types[equation.tensor] = equation.type
            self.equations[equation.tensor] = equation
            self.node_of[equation.tensor] = node.name

    def _opaque(self, node: Made, children: Sequence[int]) -> tuple[int, tuple[Equation, ...]]:
        original = self.model.nodes.get(node.name)
        if original is None or len(original.outputs) != len(node.outputs):
            raise Refused(f"the model has no node {node.name} with {len(node.outputs)} results")
        joint = self.terms.opaque(node.name, children, [self.model.graph.types[o] for o in original.outputs])
        names = dict(zip(original.outputs, node.outputs, strict=True))
        pairs = zip(original.operands, node.operands, strict=False)
        names.update({old: new for old, new in pairs if old is not None and new is not None})
        return joint, renamed_equations(original.equations, names, local_names(node.name, original.equations))
