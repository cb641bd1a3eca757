"""Reads egglog's tables back into plain classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field

from smartmem_rules.egraph.bindings import bindings
from smartmem_rules.egraph.compiler import Program
from smartmem_rules.egraph.encode import Encoding
from smartmem_rules.egraph.firings import Firing, read_firings
from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.model import ABSENT, CONSTANT, INPUT, OUT, WIDE, EClass, ENode
from smartmem_rules.egraph.patterns import constructor
from smartmem_rules.graph.model import VIEW
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.views import IndexMap


def serialize(
    egraph: bindings.EGraph, host: Host, encoding: Encoding, program: Program
) -> tuple[dict[int, EClass], dict[str, int], list[Firing]]:
    """The classes of an e-graph, the class of every tensor of the model, and what the program's tables recorded."""
    reader = _Reader(egraph, host, egraph.freeze().functions)
    names = {number: name for name, number in encoding.numbers.items()}
    tensor_class: dict[str, int] = {}
    numbered: dict[int, bindings.Value] = {}
    for inputs, output in reader.rows("N"):
        number = egraph.value_to_i64(inputs[0])
        numbered[number] = output
        if number in names:
            tensor_class[names[number]] = reader.number(output)
    for (absent,) in ((output,) for _, output in reader.rows("Absent")):
        reader.numbers[absent] = ABSENT
    for inputs, output in reader.rows("Out"):
        place = egraph.value_to_i64(inputs[1])
        reader.add(output, ENode(OUT, (reader.number(inputs[0]),), {"index": place}))
    for table in (INPUT, CONSTANT):
        for inputs, output in reader.rows(table):
            reader.add(output, ENode(table, (), {"name": egraph.value_to_string(inputs[0])}))
    wide = list(encoding.wide)
    for inputs, output in reader.rows(WIDE):
        one = wide[egraph.value_to_i64(inputs[0])]
        children = tuple(reader.number(numbered[number]) for number in one.operands)
        reader.add(output, ENode(one.operator, children, host.attribute(one.attributes), one.outputs))
    reader.add_applications("View", VIEW, 1)
    for operator, occurring in program.shapes.items():
        for counts in occurring:
            reader.add_applications(constructor(operator, counts), operator, counts[1])
    for inputs, output in reader.rows("meta"):
        reader.get(inputs[0]).meta = host.meta(egraph.value_to_string(output))
    tensors: dict[int, list[str]] = defaultdict(list)
    for name, number in tensor_class.items():
        tensors[number].append(name)
    for number, own in tensors.items():
        reader.classes[number].tensors = tuple(own)
    reader.credit()
    rows = {table.name: [inputs for inputs, _ in reader.rows(table.name)] for table in program.tables}
    firings = list(read_firings(egraph, host, program.tables, rows.__getitem__, reader.number))
    return reader.classes, tensor_class, firings


@dataclass
class _Reader:
    egraph: bindings.EGraph
    host: Host
    functions: Mapping[str, bindings.FrozenFunction]
    classes: dict[int, EClass] = field(default_factory=dict)
    numbers: dict[bindings.Value, int] = field(default_factory=dict)

    def rows(self, table: str) -> list[tuple[list[bindings.Value], bindings.Value]]:
        function = self.functions.get(table)
        return [] if function is None else [(row.inputs, row.output) for row in function.rows]

    def number(self, value: bindings.Value) -> int:
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.numbers)
            self.classes[found] = EClass(found, [], None)
        return found

    def get(self, value: bindings.Value) -> EClass:
        number = self.number(value)
        return self.classes.get(number) or EClass(number, [], None)

    def add(self, value: bindings.Value, node: ENode) -> None:
        self.get(value).nodes.append(node)

    def add_applications(self, table: str, operator: str, outputs: int) -> None:
        rules: dict[tuple[bindings.Value, ...], list[str]] = defaultdict(list)
        for inputs, _ in self.rows(f"by_{table}"):
            rules[tuple(inputs[:-1])].append(self.egraph.value_to_string(inputs[-1]))
        for inputs, output in self.rows(table):
            made = rules.get(tuple(inputs), [""])
            text = self.egraph.value_to_string(inputs[-1])
            attributes: Mapping[str, Value | IndexMap]
            attributes = {"map": self.host.map(text)} if operator == VIEW else self.host.attribute(text)
            # the e-nodes of the model itself are marked by the empty rule name
            names = () if "" in made else tuple(sorted(made))
            children = tuple(self.number(child) for child in inputs[:-1])
            self.add(output, ENode(operator, children, attributes, outputs, names))

    def credit(self) -> None:
        """Count the e-nodes that rules added."""
        for eclass in self.classes.values():
            for node in eclass.nodes:
                for rule in node.rules:
                    statistics = self.host.statistics.get(rule)
                    if statistics is not None:
                        statistics.enodes += 1
