"""A model without the nodes that ONNX Runtime does not run: what they give becomes an input, what they read an output.

Two models that have the same such nodes compute the same, whatever these compute, if for all values of these inputs
they give the same outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx

from smartmem_rules.graph.loading import describe, named_in_bodies, node_inputs
from smartmem_rules.records import dataclass
from smartmem_rules.simplification.types import Types, is_usable, skeleton_of, types_of

Key = tuple[object, ...]


class ChangedNode(Exception):
    """A node that ONNX Runtime does not run is another one in the simplified model."""


@dataclass(frozen=True)
class Compared:
    """What is compared of two models.

    Attributes:
        label: what it is for people.
        tensor: its name in one of the models.
        original: the tensor of the model before it was simplified, for its precision.
    """

    label: str
    tensor: str
    original: str


@dataclass(frozen=True)
class Remainder:
    """A model that ONNX Runtime runs, and what is compared of it."""

    model: onnx.ModelProto
    compared: Sequence[Compared]


@dataclass(frozen=True)
class Cut:
    """The nodes that are left out of a model.

    Attributes:
        nodes: by their first result, in the order of the model.
        described: what they are called, in the same order.
        types: of their results, where rules can see them.
    """

    nodes: Mapping[str, onnx.NodeProto]
    described: tuple[str, ...]
    types: Types

    def remainder(self, model: onnx.ModelProto) -> Remainder:
        """What is left of the model itself, or of what was made of it.

        Nodes that are no longer there are not compared: no output depends on them, or the remainder does not load.

        Raises:
            ChangedNode: a node that is left out differs from that of the model itself in more than names of operands.
        """
        there = {_first(node): node for node in model.graph.node if _first(node) in self.nodes}
        made = {name for node in self.nodes.values() for name in node.output if name}
        given = (value.name for value in model.graph.output if value.name not in made)
        compared = [Compared(f"the output {name!r}", name, name) for name in given]
        for (first, original), described in zip(self.nodes.items(), self.described, strict=True):
            if first in there:
                compared += self._operands(original, there[first], made, described)
        result = onnx.ModelProto()
        result.CopyFrom(model)
        graph = result.graph
        del graph.node[:], graph.output[:], graph.value_info[:]
        graph.node.extend(node for node in model.graph.node if _first(node) not in self.nodes)
        free = (name for node in there.values() for name in node.output if name in self.types)
        graph.input.extend(onnx.ValueInfoProto(name=name, type=self.types[name]) for name in free)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(one.tensor for one in compared))
        return Remainder(result, compared)

    def _operands(
        self, original: onnx.NodeProto, found: onnx.NodeProto, made: set[str], named: str
    ) -> Iterator[Compared]:
        """What a node that is left out reads, as far as a remainder has it; of the rest the names are the same."""
        if _form(original) != _form(found):
            raise ChangedNode(f"{named}, which ONNX Runtime does not run, is another node")
        unseen = made - self.types.keys()
        for number, (before, after) in enumerate(zip(original.input, found.input, strict=True)):
            if before != after and (before in unseen or after in unseen):
                raise ChangedNode(f"{named}, which ONNX Runtime does not run, reads {after!r} in place of {before!r}")
            if after and after not in unseen:
                yield Compared(f"operand {number} of {named}", after, before)
        for name in sorted(set(named_in_bodies(found)) - unseen):  # bodies name them as before
            yield Compared(f"{name!r} in {named}", name, name)


def cut_of(model: onnx.ModelProto, runs: Callable[[onnx.ModelProto], bool]) -> Cut | None:
    """The nodes that have to be left out so that ONNX Runtime runs a model; None if each of its nodes runs.

    A node whose operands have unknown types or extents because they come from such a node is left out as well.

    Args:
        runs: whether ONNX Runtime loads a model.
    """
    skeleton = skeleton_of(model)
    types = types_of(skeleton)
    known: dict[Key, bool] = {}
    left: dict[int, onnx.NodeProto] = {}
    opaque: set[str] = set()
    changed = True
    while changed:  # the nodes of a file need not be in topological order
        changed = False
        for place, node in enumerate(skeleton.graph.node):
            if place in left or not _first(node):
                continue
            lost = any(name in opaque and not is_usable(types.get(name)) for name in node_inputs(node))
            if lost or not _runs(skeleton, node, types, runs, known):
                left[place] = node
                opaque.update(filter(None, node.output))
                changed = True
    if not left:
        return None
    usable = {name: types[name] for name in sorted(opaque) if is_usable(types.get(name))}
    places = sorted(left)
    described = tuple(describe(left[place], place) for place in places)
    return Cut({_first(left[place]): left[place] for place in places}, described, usable)


def _runs(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    types: Types,
    runs: Callable[[onnx.ModelProto], bool],
    known: dict[Key, bool],
) -> bool:
    """Whether a node alone runs, as one of the model's types and constants."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer if not tensor.external_data}
    read = dict.fromkeys(node_inputs(node))
    key = (
        *_form(node, names=False),
        *(types[name].SerializeToString() if name in types else None for name in read),
        *(constants[name].SerializeToString() if name in constants else None for name in read),
    )
    if key not in known:
        graph = onnx.GraphProto(name="one")
        graph.node.append(node)
        graph.initializer.extend(constants[name] for name in read if name in constants)
        graph.input.extend(
            onnx.ValueInfoProto(name=n, type=types.get(n)) for n in read if n not in constants and types.get(n)
        )
        graph.output.extend(onnx.ValueInfoProto(name=name, type=types.get(name)) for name in node.output if name)
        known[key] = runs(
            onnx.ModelProto(
                ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions, graph=graph
            )
        )
    return known[key]


def _first(node: onnx.NodeProto) -> str:
    return next(filter(None, node.output), "")


def _form(node: onnx.NodeProto, names: bool = True) -> Key:
    """What a node is besides the names of its operands."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.input[:]
    if not names:
        copy.ClearField("name")
        copy.output[:] = ["y" if name else "" for name in node.output]
    present = tuple(bool(name) for name in node.input)
    return (copy.SerializeToString(deterministic=True), present)
