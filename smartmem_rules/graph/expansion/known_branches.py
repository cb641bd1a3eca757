"""`If` nodes whose conditions are known: the branch that is taken stands in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import onnx
from onnx import helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.primitives import Array


@dataclass(frozen=True)
class Inlined:
    """A model without the `If` nodes whose conditions are known.

    Attributes:
        places: where those nodes stood in the model that this one was made of.
    """

    model: onnx.ModelProto
    places: tuple[int, ...]


def with_known_branches(model: onnx.ModelProto, known: Mapping[str, Array], kept: Collection[int]) -> Inlined | None:
    """Put the nodes of branches that are always taken in place of their `If` nodes (ONNX If-1), outermost ones only.

    Names of a branch stay, unless another part of the model has them as well.

    Args:
        known: the values of tensors that do not depend on the model's inputs.
        kept: the places of nodes that stay in any case.

    Returns:
        None where there is no such node.
    """
    places = tuple(
        place
        for place, node in enumerate(model.graph.node)
        if place not in kept
        and (node.op_type, domain_of(node.domain)) == ("If", DEFAULT_DOMAIN)
        and node.input[0] in known
        and not _branch(node, known).sparse_initializer
    )
    if not places:
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    names = Counter(_defined(model.graph))
    del made.graph.node[:]
    for place, node in enumerate(model.graph.node):
        if place in places:
            _put(made.graph, node, _branch(node, known), names)
        else:
            made.graph.node.append(node)
    return Inlined(made, places)


def _branch(node: onnx.NodeProto, known: Mapping[str, Array]) -> onnx.GraphProto:
    name = "then_branch" if bool(known[node.input[0]].reshape(-1)[0]) else "else_branch"
    found: onnx.GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == name)
    return found


def _put(graph: onnx.GraphProto, node: onnx.NodeProto, branch: onnx.GraphProto, names: Counter[str]) -> None:
    """Add the nodes and constants of a branch to a graph, with the node's outputs as their results."""
    made = {name for one in branch.node for name in one.output if name}
    results: dict[str, str] = {}
    copies = []
    for value, output in zip(branch.output, node.output, strict=True):
        if not output:
            continue
        if value.name in made and value.name not in results:
            results[value.name] = output
        else:  # a tensor of another graph, a constant, or a result that is given twice
            copies.append((value.name, output))
    new = {**{name: _free(name, names) for name in _own(branch) if name not in results}, **results}
    for one in branch.node:
        graph.node.append(one)
        _rename(graph.node[-1], new)
    for name, output in copies:
        graph.node.append(helper.make_node("Identity", [new.get(name, name)], [output]))
    for tensor in branch.initializer:
        graph.initializer.append(tensor)
        graph.initializer[-1].name = new[tensor.name]
    for value in branch.value_info:
        if value.name in new and value.name not in results:
            graph.value_info.append(value)
            graph.value_info[-1].name = new[value.name]


def _own(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a graph itself defines."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from filter(None, node.output)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a graph and its bodies define, once for each definition."""
    yield from set(_own(graph))
    for node in graph.node:
        for body in _bodies(node):
            yield from _defined(body)


def _free(name: str, names: Counter[str]) -> str:
    """The name, or one that nothing else has."""
    if names[name] == 1:
        return name
    number = 1
    while f"{name}.{number}" in names:
        number += 1
    names[f"{name}.{number}"] += 1
    return f"{name}.{number}"


def _rename(node: onnx.NodeProto, new: Mapping[str, str]) -> None:
    """Give tensors that a node and its bodies name other names; a body may not define a name of those around it."""
    node.input[:] = [new.get(name, name) for name in node.input]
    node.output[:] = [new.get(name, name) for name in node.output]
    for body in _bodies(node):
        for inner in body.node:
            _rename(inner, new)
        for value in body.output:
            value.name = new.get(value.name, value.name)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g
