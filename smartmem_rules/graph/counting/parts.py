"""A graph that counts extents while it runs, taken apart: each part knows the extents that those before it counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.graph.counting.dimensions_read import dimensions_of
from smartmem_rules.graph.model import Counted, Graph, Node
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import rename_reads
from smartmem_rules.tensor.extents import dimensions


@dataclass(frozen=True)
class Part:
    """One part, a graph like any other, whose inputs may be results of those before it.

    Attributes:
        counted: the dimensions that it counts, for those behind it.
    """

    graph: Graph
    counted: tuple[Counted, ...]


def parts_of(graph: Graph) -> list[Part]:
    """The parts in their order; the graph itself where no extent is counted.

    Constants that several parts read have a name of their own in each, because each part stores them as it needs them.
    """
    if not graph.counted:
        return [Part(graph, ())]
    numbers = _numbers(graph)
    nodes: list[list[Node]] = [[] for _ in range(max(numbers.values(), default=0) + 1)]
    for node in graph.nodes:
        nodes[numbers[node.name]].append(node)
    made_by = {output: numbers[node.name] for node in graph.nodes for output in node.outputs}
    made_by.update(dict.fromkeys(graph.inputs, -1))
    wanted = [*graph.outputs, *(one.tensor for one in graph.counted)]
    read = [dict.fromkeys(_reads(part)) for part in nodes]
    held: dict[str, int] = {}
    parts = []
    for number, part in enumerate(nodes):
        later = {name for names in read[number + 1 :] for name in names}
        made = [output for node in part for output in node.outputs if made_by[output] == number]
        outputs = [name for name in dict.fromkeys(made) if name in later or name in wanted]
        inputs = [name for name in read[number] if made_by.get(name, number) < number]
        constants = [name for name in read[number] if name in graph.constants]
        if number == 0:  # which has what the model takes, and gives on what is known
            inputs = list(graph.inputs)
            given = [name for name in graph.outputs if name in graph.inputs or name in graph.constants]
            outputs += dict.fromkeys(given)
            constants += [name for name in dict.fromkeys(given) if name in graph.constants and name not in constants]
        own = {name: name if held.setdefault(name, number) == number else f"{name}@{number}" for name in constants}
        counted = tuple(one for one in graph.counted if made_by[one.tensor] == number)
        parts.append(Part(_part(graph, number, part, inputs, outputs, own), counted))
    return parts


def _numbers(graph: Graph) -> dict[str, int]:
    """By node the number of its part: behind those whose results it reads and that count what it has to know."""
    tensors = {one.dimension: one.tensor for one in graph.counted}
    made = {name for node in graph.nodes for name in node.outputs}
    by_tensor: dict[str, int] = {}
    numbers: dict[str, int] = {}
    pending = [(node, [tensors[d] for d in dimensions_of(node.equations) if d in tensors]) for node in graph.nodes]
    while pending:
        left = []
        for node, counts in pending:
            read = [name for name in _operands(node) if name in made]
            if not all(name in by_tensor for name in (*read, *counts)):
                left.append((node, counts))  # tensors of extents stand before what counts these
                continue
            number = max([0, *(by_tensor[name] for name in read), *(by_tensor[name] + 1 for name in counts)])
            numbers[node.name] = number
            by_tensor.update(dict.fromkeys(node.outputs, number))
        pending = left
    return numbers


def _operands(node: Node) -> list[str]:
    return [name for name in node.operands if name is not None]


def _reads(nodes: Sequence[Node]) -> Iterable[str]:
    return (name for node in nodes for name in _operands(node))


def _part(
    graph: Graph,
    number: int,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    constants: Mapping[str, str],
) -> Graph:
    renamed = {old: new for old, new in constants.items() if old != new}
    nodes = [_renamed(node, renamed) for node in nodes] if renamed else list(nodes)
    made = {e.tensor for node in nodes for e in node.equations}
    made |= {name for node in nodes for name in node.outputs} | {*inputs, *outputs}
    types = {name: type_ for name, type_ in graph.types.items() if name in made}
    types |= {new: graph.types[old] for old, new in constants.items()}
    known = {d for type_ in types.values() for extent in type_.shape for d in dimensions(extent)}
    known |= dimensions_of([e for node in nodes for e in node.equations])
    return replace(
        graph,
        nodes=nodes,
        types=types,
        constants={new: graph.constants[old] for old, new in constants.items()},
        inputs=list(inputs),
        outputs=list(outputs),
        sizes={},
        endings=None,
        counted=(),
        part=number,
        dimensions=tuple(sorted(known, key=lambda d: d.name)),
        kept=frozenset(name for name in graph.kept if name in types),
    )


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    equations = tuple(replace(e, body=rename_reads(e.body, names)) for e in node.equations)
    operands = tuple(None if name is None else names.get(name, name) for name in node.operands)
    return replace(node, operands=operands, equations=equations)
