"""A graph as rows of egglog tables.

Rows are loaded from files, one for each constructor: that is an order of magnitude faster than one statement for each
node (measured), and the program's text does not grow with the model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import field
from pathlib import Path

from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.joint import joint_tables
from smartmem_rules.egraph.model import CONSTANT, IMPORTED, INPUT, OUT, WIDE, Meta
from smartmem_rules.egraph.patterns import NO_ATTRIBUTES, Counts, constructor
from smartmem_rules.graph.equations import is_opaque
from smartmem_rules.graph.model import VIEW, Graph, Node
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.views import IndexMap

ABSENT_NUMBER = 0
"""The number of the absent operand; tensors count from 1."""
MOST_COLUMNS = 128
"""Operands of an application that rules can match; egglog declares a table in time quadratic in its columns."""


@dataclass(frozen=True)
class Wide:
    """An application to more operands than a table has columns for: one row, whose only column is its place here."""

    operator: str
    operands: tuple[int, ...]
    """By their numbers."""
    attributes: str
    outputs: int


@dataclass(kw_only=True)
class Encoding:
    """The rows by table, and the number of every tensor."""

    tables: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    shapes: dict[str, set[Counts]] = field(default_factory=lambda: defaultdict(set))
    numbers: dict[str, int] = field(default_factory=dict)
    count: int = 1
    constants: dict[str, int] = field(default_factory=dict)
    """The number of each constant; equal small ones have one."""
    relations: set[str] = field(default_factory=set)
    """The tables whose rows are single tensors."""
    wide: dict[Wide, int] = field(default_factory=dict)
    """Equal ones have one place, so that they become one."""

    def number(self, tensor: str) -> int:
        found = self.numbers.get(tensor)
        if found is None:
            found = self.numbers[tensor] = self.fresh()
        return found

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def note_joint(self, graph: Graph, sizes: Collection[int]) -> None:
        """Add the tables that rules of several patterns need; `sizes` are their numbers of patterns."""
        for table, names in joint_tables(graph, sizes, self.constants).items():
            rows = [str(self.numbers[name]) for name in names if name in self.numbers]
            if rows:  # egglog reads no empty file
                self.relations.add(table)
                self.tables[table] = rows


def encode(graph: Graph, host: Host) -> Encoding:
    """The tables of a graph; the host interns its types, constants and attributes."""
    assert host.attribute_name({}) == NO_ATTRIBUTES
    encoding = Encoding()
    readings = Counter(o for node in graph.nodes for o in node.operands)
    kept = set(graph.outputs)
    used = {o for node in graph.nodes for o in node.operands if o is not None} | kept
    for name in graph.inputs:
        encoding.tables[INPUT].append(f"{encoding.number(name)}\t{name_text(encoding.number(name))}")
    constants = encoding.constants
    for name in graph.constants:
        if name in used:
            constants[name] = host.constants.given(name, graph.types[name], graph.constants)
            encoding.tables[CONSTANT].append(f"{encoding.number(name)}\tk{constants[name]}")
    for node in graph.nodes:
        _encode_node(node, graph, encoding, host)
    for name, number in encoding.numbers.items():
        uses = readings[name] + (name in kept)
        meta = Meta(graph.types[name], constants.get(name), uses, name, name in graph.kept)
        encoding.tables["meta"].append(f"{number}\t{host.meta_name(meta)}")
    return encoding


def name_text(number: int) -> str:
    return f"i{number}"


def _encode_node(node: Node, graph: Graph, encoding: Encoding, host: Host) -> None:
    operands = list(node.operands)
    while operands and operands[-1] is None:
        operands.pop()
    numbers = [ABSENT_NUMBER if o is None else encoding.number(o) for o in operands]
    if node.operator == VIEW:
        map_ = node.attributes["map"]
        assert isinstance(map_, IndexMap)
        encoding.tables[VIEW].append(_row(encoding.number(node.outputs[0]), *numbers, host.map_name(map_)))
        return
    counts = len(numbers), len(node.outputs)
    operator, attributes = node.operator, host.attribute_name(node.attributes)
    if is_opaque(node, graph.types, host.instances):
        operator, attributes = IMPORTED, host.attribute_name({"node": node.name})
    if len(numbers) > MOST_COLUMNS:
        one = Wide(operator, tuple(numbers), attributes, len(node.outputs))
        table, columns = WIDE, [str(encoding.wide.setdefault(one, len(encoding.wide)))]
    else:
        encoding.shapes[operator].add(counts)
        table, columns = constructor(operator, counts), [*map(str, numbers), attributes]
    if len(node.outputs) == 1:
        encoding.tables[table].append(_row(encoding.number(node.outputs[0]), *columns))
        return
    joint = encoding.fresh()
    encoding.tables[table].append(_row(joint, *columns))
    for place, output in enumerate(node.outputs):
        if output:
            encoding.tables[OUT].append(_row(encoding.number(output), joint, place))


def _row(*columns: int | str) -> str:
    return "\t".join(map(str, columns))


def write_tables(encoding: Encoding, folder: Path) -> str:
    """Write the tables as files; gives the egglog program that loads them from the folder."""
    lines = [f"(union (N {ABSENT_NUMBER}) (Absent))"]
    columns: dict[str, list[str]] = {
        INPUT: ["String"],
        CONSTANT: ["String"],
        OUT: ["T", "i64"],
        WIDE: ["i64"],
        VIEW: ["T", "String"],
        "meta": ["String"],
    }
    columns.update((name, []) for name in encoding.relations)
    for operator, shapes in encoding.shapes.items():
        for counts in shapes:
            columns[constructor(operator, counts)] = ["T"] * counts[0] + ["String"]
    for table, rows in encoding.tables.items():
        (folder / f"{table}.tsv").write_text("\n".join(rows) + "\n")
        lines += _loader(table, columns[table], table in encoding.relations)
    lines.append("(run-schedule (run load))")
    return "\n".join(lines)


def _loader(table: str, columns: list[str], of_one: bool) -> Iterable[str]:
    names = [f"?c{i}" for i in range(len(columns))]
    values = [f"(N {name})" if sort == "T" else name for name, sort in zip(names, columns, strict=True)]
    sorts = " ".join("i64" if sort == "T" else sort for sort in columns)
    if of_one:
        actions = f"({table} (N ?id))"
    elif table == "meta":
        actions = f"(set (meta (N ?id)) {values[0]})"
    else:
        actions = f"(union (N ?id) ({table} {' '.join(values)}))"
        if table not in (INPUT, CONSTANT, OUT, WIDE):
            actions += f' (by_{table} {" ".join(values)} "")'
    yield f"(relation load_{table} (i64 {sorts}))"
    yield f'(rule ((load_{table} ?id {" ".join(names)})) ({actions}) :ruleset load :name "load#{table}")'
    yield f'(input load_{table} "{table}.tsv")'
