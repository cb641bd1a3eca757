"""Turns a selection of e-nodes back into a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.egraph.model import IMPORTED, INPUT, OUT, ENode, Saturation
from smartmem_rules.graph.described import Tensors
from smartmem_rules.graph.equations import local_names, renamed_equations
from smartmem_rules.graph.model import VIEW, Graph, Node
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import Equation, Read, TensorType
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
        self.node_names: set[str] = set()
        self.names: dict[int, str] = {}
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {name: graph.types[name] for name in graph.inputs}
        self.constants = Tensors[str]()
        self.producers = graph.producers()
        self.by_name = {node.name: node for node in graph.nodes}

    def run(self, roots: Sequence[int]) -> Graph:
        order = self._order(roots)
        self._name_classes(order)
        results: dict[int, dict[int, int]] = defaultdict(dict)
        for number in order:
            node = self._node(number)
            if node is not None and node.operator == OUT:
                results[node.children[0]][_place(node)] = number
        for number in order:
            self._add(number, results[number])
        self._copy_outputs()
        nodes = with_origins(self.nodes, self.graph, self._classes_of_names(), self.saturation.tensor_class)
        # constants are folded, unless a rule keeps what is made of them
        kept = frozenset(o for n in nodes if n.operands and self.constants.keys() >= set(n.operands) for o in n.outputs)
        return replace(self.graph, nodes=nodes, types=self.types, constants=self.constants, kept=kept)

    def _node(self, number: int) -> ENode | None:
        """The chosen e-node of a class, None for a constant."""
        eclass = self.saturation.classes[number]
        if eclass.meta is not None and eclass.meta.constant is not None:
            return None
        return eclass.nodes[self.selection[number]]

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
                    node = self._node(number)
                    children = [] if node is None else [c for c in node.children if c >= 0]
                    stack.extend((child, False) for child in reversed(children))
        return order

    # --- names ---

    def _fresh(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def _name_classes(self, order: Iterable[int]) -> None:
        """Inputs and outputs keep their names; other tensors have a name of the model, best from the same operator."""
        outputs, inputs = set(self.graph.outputs), set(self.graph.inputs)
        for number in order:
            node = self._node(number)

            def rank(tensor: str, operator: str | None = None if node is None else node.operator) -> tuple[bool, ...]:
                producer = self.producers.get(tensor)
                return tensor not in inputs, tensor not in outputs, producer is None or producer.operator != operator

            tensors = self.saturation.classes[number].tensors
            if tensors:
                self.names[number] = min(tensors, key=rank)

    def _name(self, number: int, suffix: str) -> str:
        if number not in self.names:
            self.names[number] = self._fresh(f"made.{suffix}")
        return self.names[number]

    def _node_name(self, operator: str, outputs: Sequence[str]) -> str:
        """The name of the model's node where it is the same operator, else one made of both."""
        producer = next((self.producers[o] for o in outputs if o in self.producers), None)
        if producer is not None and producer.operator == operator and producer.name not in self.node_names:
            name = producer.name
        else:
            name = self._fresh(operator if producer is None else f"{producer.name}:{operator}")
        self.node_names.add(name)
        return name

    def _classes_of_names(self) -> dict[str, int]:
        return {name: number for number, name in self.names.items()}

    # --- nodes ---

    def _add(self, number: int, results: Mapping[int, int]) -> None:
        eclass = self.saturation.classes[number]
        node = self._node(number)
        if node is None:
            meta = eclass.meta
            assert meta is not None
            assert meta.constant is not None
            name = self._name(number, "constant")
            self.saturation.constants.give(meta.constant, self.constants, name)
            self.types[name] = meta.type
        elif node.operator == VIEW:
            assert eclass.meta is not None
            map_ = node.attributes["map"]
            assert isinstance(map_, IndexMap)
            self._add_view(self._name(number, VIEW), self.names[node.children[0]], map_, eclass.meta.type)
        elif node.operator not in (INPUT, OUT):
            self._add_application(number, node, results)

    def _add_view(self, output: str, operand: str, map_: IndexMap, type_: TensorType) -> None:
        equation = Equation(output, map_.variables, Read(operand, map_.indices, type_.dtype), type_)
        name = self._node_name(VIEW, (output,))
        # the attribute of the engine's own operator is no value of the rule language
        attributes: dict[str, Value] = {"map": map_}  # type: ignore[dict-item]
        self.nodes.append(Node(name, VIEW, (operand,), attributes, (output,), (), (equation,)))
        self.types[output] = type_

    def _add_application(self, number: int, node: ENode, results: Mapping[int, int]) -> None:
        places = {0: number} if node.outputs == 1 else results
        outputs = tuple(
            self._name(places[place], node.operator) if place in places else self._fresh(f"unused.{node.operator}")
            for place in range(node.outputs)
        )
        operands = tuple(self.names[c] if c >= 0 else None for c in node.children)
        if node.operator == IMPORTED:
            self._add_imported(node, operands, outputs)
            return
        types = [None if o is None else self.types[o] for o in operands]
        attributes: dict[str, Value] = dict(node.attributes)  # type: ignore[arg-type]
        instance = self.saturation.instances.get(node.operator, types, attributes, node.outputs)
        name = self._node_name(node.operator, outputs)
        names = {output_name(place): output for place, output in enumerate(outputs)}
        names.update({operand_name(place): operand for place, operand in enumerate(operands) if operand is not None})
        self._append(name, node.operator, operands, attributes, outputs, instance.equations, names)

    def _add_imported(self, node: ENode, operands: tuple[str | None, ...], outputs: tuple[str, ...]) -> None:
        """A node that only its own equations describe, with its tensors renamed."""
        original = self.by_name[str(node.attributes["node"])]
        names = dict(zip(original.outputs, outputs, strict=True))
        pairs = zip(original.operands, operands, strict=False)
        names.update({old: new for old, new in pairs if old is not None and new is not None})
        self.node_names.add(original.name)
        self._append(
            original.name, original.operator, operands, original.attributes, outputs, original.equations, names
        )

    def _append(
        self,
        name: str,
        operator: str,
        operands: tuple[str | None, ...],
        attributes: dict[str, Value],
        outputs: tuple[str, ...],
        equations: Sequence[Equation],
        names: dict[str, str],
    ) -> None:
        renamed = renamed_equations(equations, names, local_names(name, equations))
        self.types.update((e.tensor, e.type) for e in renamed)
        self.nodes.append(Node(name, operator, operands, attributes, outputs, (), renamed))

    def _copy_outputs(self) -> None:
        """An output of the model that is equal to another tensor is a copy of it."""
        for output in dict.fromkeys(self.graph.outputs):
            number = self.saturation.tensor_class[output]
            source = self.names[number]
            if source == output:
                continue
            type_ = self.types[source]
            if source in self.constants:
                self.constants.take_from(self.constants, output, source)
                self.types[output] = type_
            else:
                self._add_view(output, source, identity(type_.shape), type_)


def _place(node: ENode) -> int:
    place = node.attributes["index"]
    assert isinstance(place, int)
    return place


def with_origins(
    nodes: Sequence[Node], graph: Graph, made: Mapping[str, int], tensor_class: Mapping[str, int]
) -> list[Node]:
    """The nodes with the names of the ONNX nodes that they stand for.

    These are the ones between a node's results and the nearest tensors of the model that are still there; a node whose
    results the model does not have takes them from the nodes that read it.
    """
    members: dict[int, list[str]] = defaultdict(list)
    for tensor, number in tensor_class.items():
        members[number].append(tensor)
    kept = set(made.values())
    producers = graph.producers()
    places = {name: place for place, node in enumerate(graph.nodes) for name in node.origin or (node.name,)}
    origins: dict[str, tuple[str, ...]] = {}
    readers: dict[str, list[str]] = defaultdict(list)
    result: list[Node] = []
    for node in reversed(nodes):
        found: dict[str, None] = {}
        for output in node.outputs:
            if output in made:
                found.update(_cone(members[made[output]], made[output], kept, producers, tensor_class))
            elif output in tensor_class:
                found.update(_cone([output], tensor_class[output], kept, producers, tensor_class))
        if not found:
            for output in node.outputs:
                for reader in readers[output]:
                    found.update(dict.fromkeys(origins[reader]))
        origins[node.name] = tuple(sorted(found, key=places.__getitem__))
        for operand in node.operands:
            if operand is not None:
                readers[operand].append(node.name)
        result.append(replace(node, origin=origins[node.name]))
    return result[::-1]


def _cone(
    tensors: Iterable[str], own: int, kept: set[int], producers: Mapping[str, Node], tensor_class: Mapping[str, int]
) -> dict[str, None]:
    found: dict[str, None] = {}
    stack, seen = list(tensors), set(tensors)
    while stack:
        producer = producers.get(stack.pop())
        if producer is None:
            continue
        found.update(dict.fromkeys(producer.origin or (producer.name,)))
        for operand in producer.operands:
            if operand is None or operand in seen:
                continue
            if tensor_class.get(operand, own) == own or tensor_class[operand] not in kept:
                seen.add(operand)
                stack.append(operand)
    return found
