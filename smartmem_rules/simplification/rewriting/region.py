"""The part of a model that rules see: what the rule base covers. All other nodes stay as they are, as barriers.

The region is a model of its own. What barriers make are its inputs, what barriers read is among its outputs; its nodes
are named by their places in the model, so that each node of the imported graph has its node of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import onnx

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of, node_inputs
from smartmem_rules.graph.model import EXTENTS, Graph, GraphError
from smartmem_rules.graph.weights import (
    RECIPES,
    check_data_files,
    is_external,
    location,
    stored_bytes,
    tensor_value,
)
from smartmem_rules.limits import COUNTABLE, Limits
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.packed import Binding, Index, binding_of
from smartmem_rules.runtime.mapped_pages import forget_pages
from smartmem_rules.simplification.encoding import is_inside
from smartmem_rules.simplification.in_place import LARGE, mapped
from smartmem_rules.simplification.rewriting.folding import reason_of
from smartmem_rules.simplification.rewriting.narrowing import greatest_extents
from smartmem_rules.simplification.types import Types, is_seen, open_names
from smartmem_rules.tensor.instantiate import size_of
from smartmem_rules.tensor.primitives import Array

_NAME = re.compile(r"n(\d+)", re.ASCII)
_ROUNDS = 100
_OPEN_ROUNDS = 32
"""Of imports with open extents, where each may show nodes that no definition covers for all of them."""


class NothingToDo(SmartmemError):
    """Rules see nothing of a model."""


@dataclass(frozen=True, kw_only=True)
class Region:
    """What is imported of a model.

    Attributes:
        graph: the imported nodes; that of the node at place 7 of the file is called `n7`.
        barriers: the places of the nodes that stay as they are, each with the reason.
        constants: the initializers and the tensors of Constant nodes by name, of the whole model.
        left: the arrays of weights that lie in files and are mapped.
    """

    model: onnx.ModelProto
    graph: Graph
    barriers: Mapping[int, str]
    constants: Mapping[str, onnx.TensorProto]
    left: Mapping[str, Array]

    def forget_weights(self) -> None:
        """Let go of the pages of weights that were read; ONNX Runtime is about to map them as well."""
        for array in self.left.values():
            forget_pages(array)

    def place_of(self, name: str) -> int | None:
        """Where the ONNX node of a node of the graph stands in the file; None for any other name."""
        found = _NAME.fullmatch(name)
        return None if found is None else int(found[1])


@dataclass
class _Search:
    """The barriers found so far."""

    model: onnx.ModelProto
    base: RuleBase
    limits: Limits
    types: Types
    constants: Mapping[str, onnx.TensorProto]
    barriers: dict[int, str] = field(default_factory=dict)
    greatest: dict[str, int] = field(default_factory=dict)
    """Of open dimensions the extents up to which the model's operands fit each other."""

    def narrows(self, error: UncoveredNodesError) -> bool:
        """Whether nodes could not be imported for an extent at which their operands do not fit each other."""
        found: dict[str, int] = {}
        for name, types in error.operands.items():
            node = self.model.graph.node[int(name[1:])] if _NAME.fullmatch(name) else None
            if node is not None and not node.attribute and domain_of(node.domain) == DEFAULT_DOMAIN:
                found.update(greatest_extents(node.op_type, types, self.base))
        new = {name: most for name, most in found.items() if most < self.greatest.get(name, COUNTABLE)}
        self.greatest.update(new)
        return bool(new)

    def ranges(self, region: onnx.ModelProto) -> dict[str, tuple[int, int]]:
        """The ranges of the open dimensions of what rules see: what they find holds for each extent in them."""
        return {name: (0, self.greatest.get(name, COUNTABLE)) for name in open_names(region.graph.input)}

    def add(self, place: int, reason: str) -> None:
        self.barriers.setdefault(place, reason)

    def close(self) -> None:
        """A node that reads what a barrier makes is one too, where nothing is known of its shape."""
        made = {name: place for place, node in enumerate(self.model.graph.node) for name in node.output}
        given = {value.name for value in self.model.graph.input}
        for place, node in enumerate(self.model.graph.node):  # the nodes are in topological order
            if place in self.barriers:
                continue
            for name in filter(None, node.input):
                maker = made.get(name)
                outside = name in given if maker is None else maker in self.barriers
                if outside and name not in self.constants and not is_seen(self.types.get(name)):
                    self.add(place, f"the shape of {name!r} is not known")
                    break


def region_of(
    model: onnx.ModelProto,
    base: RuleBase,
    kept: Mapping[int, str],
    limits: Limits,
    constants: Mapping[str, onnx.TensorProto],
    types: Types,
    folder: Path | None,
    small: Collection[str],
    most: int,
) -> Region:
    """Import as much of a model as the rule base covers.

    Args:
        model: its nodes in topological order.
        kept: the places of nodes that are barriers from the beginning, each with the reason.
        types: of all tensors.
        folder: where its data files are.
        small: the tensors that may be computed here, whatever their size is.
        most: the bytes of any other.

    Raises:
        NothingToDo: all nodes are barriers.
        GraphError: the model is damaged.
    """
    search = _Search(model, base, limits, types, constants, dict(kept))
    for place, reason in _hopeless(model, base, search.types):
        search.add(place, reason)
    left = _left_in_files(model, constants, folder)
    for done in range(_ROUNDS):
        search.close()
        made = _region_model(search, left)
        if done == _OPEN_ROUNDS and open_names(made.graph.input):
            raise GraphError(f"after {done} imports there are still nodes that no definition covers for all extents")
        try:
            graph = import_model(
                made,
                base,
                search.ranges(made),
                limits=limits,
                folder=folder,
                weights=left,
                ahead=False,
                any_extent=True,
            )
        except UncoveredNodesError as error:
            if search.narrows(error):
                continue
            found = [int(match[1]) for name in error.nodes if (match := _NAME.fullmatch(name))]
            reason = "no definition covers it"
        else:
            found = _expanded(graph, model, search.barriers)
            reason = "the importer takes it apart"
            if not found:
                found = _large(graph, model, small, most)
                reason = reason_of(most)
            if not found:
                return Region(model=model, graph=graph, barriers=search.barriers, constants=constants, left=left)
        if not found or search.barriers.keys() >= set(found):
            raise GraphError("the model cannot be taken apart into what rules cover and what they do not")
        for place in found:
            search.add(place, reason)
    raise GraphError(f"after {_ROUNDS} imports there are still nodes that no definition covers")


def _left_in_files(
    model: onnx.ModelProto, constants: Mapping[str, onnx.TensorProto], folder: Path | None
) -> dict[str, Array]:
    """The initializers that are not read: they are mapped from the model's file or from its data files."""
    check_data_files(model.graph, folder)
    found = {}
    for tensor in model.graph.initializer:
        if folder is None or tensor.name not in constants or not is_external(tensor):
            continue
        if is_inside(tensor):
            found[tensor.name] = mapped(tensor, folder)
        elif location(tensor).get("location") not in RECIPES and stored_bytes(tensor) > LARGE:
            found[tensor.name] = tensor_value(tensor.name, tensor, folder, mapped=True)
    return found


def _hopeless(model: onnx.ModelProto, base: RuleBase, types: Types) -> Iterator[tuple[int, str]]:
    """The nodes that need not be tried."""
    bound = Index.of(base.operators).bound
    known: dict[tuple[str, str], bool | None] = {}
    texts = {name for name, type_ in types.items() if type_.tensor_type.elem_type == onnx.TensorProto.STRING}
    others = {name for name, type_ in types.items() if name and not type_.HasField("tensor_type")}
    local = {(domain_of(function.domain), function.name) for function in model.functions}
    for place, node in enumerate(model.graph.node):
        key = (domain_of(node.domain), node.op_type)
        if not texts.isdisjoint(node.input) or not texts.isdisjoint(node.output):
            yield place, "it works on text"
            continue
        if key == (DEFAULT_DOMAIN, "Constant"):
            continue
        if key in local:
            yield place, "a function of the model"
        elif any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute):
            yield place, "it has a body"
        elif _is_sized(key, base, bound, known) is None:
            yield place, "the rule base defines no such operator"
        elif known[key]:
            yield place, "the extents of its results depend on data"
        elif not others.isdisjoint(node.input) or not others.isdisjoint(node.output):
            yield place, "it works on sequences or optional values"


def _is_sized(
    key: tuple[str, str],
    base: RuleBase,
    bound: Mapping[Binding, Sequence[str]],
    known: dict[tuple[str, str], bool | None],
) -> bool | None:
    """Whether a definition of an operator of ONNX has extents that depend on data; None where there is none.

    Args:
        key: its domain and name.
        bound: the names of the definitions.
        known: what was asked before.
    """
    if key not in known:
        bindings: set[Binding] = {key} if key[0] != DEFAULT_DOMAIN else {key, (None, key[1])}
        names = {name for binding in bindings for name in bound.get(binding, ())}
        overloads = [one for name in names for one in base.operators[name] if not one.internal]
        outputs = [output for one in overloads if binding_of(one) in bindings for output in one.outputs]
        sized = any(size_of(extent) is not None for output in outputs for extent in output.type.shape)
        known[key] = sized if names else None
    return known[key]


def _region_model(search: _Search, left: Collection[str]) -> onnx.ModelProto:
    """The model of all nodes that are no barriers, without the initializers that are left in their files."""
    graph = search.model.graph
    inside = [(place, node) for place, node in enumerate(graph.node) if place not in search.barriers]
    made = {name for _, node in inside for name in node.output if name}
    read = {name for _, node in inside for name in node.input if name}
    given = [name for name in _outside(search) if name in read]
    wanted = dict.fromkeys(value.name for value in graph.output if value.name in made)
    for place in search.barriers:
        wanted.update((name, None) for name in node_inputs(graph.node[place]) if name in made)
    region = onnx.GraphProto(name=graph.name)
    for place, node in inside:
        copy = region.node.add()
        copy.CopyFrom(node)
        copy.name = f"n{place}"
    held = (t for t in graph.initializer if t.name in read and t.name in search.constants)
    region.initializer.extend(tensor for tensor in held if tensor.name not in left)
    region.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in read)
    region.input.extend(onnx.ValueInfoProto(name=name, type=search.types[name]) for name in given)
    region.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    if not region.output:  # nothing is left that rules could see
        raise NothingToDo("no rule covers any node of the model")
    return onnx.ModelProto(ir_version=search.model.ir_version, opset_import=search.model.opset_import, graph=region)


def _outside(search: _Search) -> Iterator[str]:
    """What the region may read that it does not compute: inputs of the model and results of barriers."""
    graph = search.model.graph
    initializers = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if value.name not in initializers or value.name not in search.constants:
            yield value.name
    for place in sorted(search.barriers):
        yield from filter(None, graph.node[place].output)


def _expanded(graph: Graph, model: onnx.ModelProto, barriers: Collection[int]) -> list[int]:
    """The places of nodes that the importer replaced by several: their results come from nodes with other names."""
    makers = {name: place for place, node in enumerate(model.graph.node) for name in node.output if name}
    own = {name for name, place in makers.items() if place not in barriers}
    readers = graph.consumers()
    found: set[int] = set()
    for node in graph.nodes:
        place = int(match[1]) if (match := _NAME.fullmatch(node.name)) else None
        if place is not None and set(filter(None, model.graph.node[place].output)) & set(node.outputs):
            continue
        if node.operator == EXTENTS:
            continue
        found.update(makers[name] for name in _first_own(node.outputs, own, readers))
    return sorted(found)


def _large(graph: Graph, model: onnx.ModelProto, small: Collection[str], most: int) -> list[int]:
    """The places of nodes that were computed, and whose results turned out to be large."""
    makers = {name: place for place, node in enumerate(model.graph.node) for name in node.output if name}
    # weights are not asked for, or those that the model describes would be drawn
    computed = [name for name in graph.constants if name in makers and name not in small]
    sizes = {name: graph.constants[name].nbytes for name in computed}
    return sorted({makers[name] for name, size in sizes.items() if size > most})


def _first_own(outputs: Sequence[str], own: Collection[str], readers: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """The first tensors of the model after some tensors of the importer's own."""
    pending, seen = list(outputs), set(outputs)
    while pending:
        name = pending.pop()
        if name in own:
            yield name
            continue
        for reader in readers.get(name, ()):
            for output in reader.outputs:  # type: ignore[attr-defined]
                if output not in seen:
                    seen.add(output)
                    pending.append(output)
