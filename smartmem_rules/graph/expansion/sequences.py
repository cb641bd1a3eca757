"""Sequences and optional values whose course is known at import: they become the tensors that they hold.

A sequence is a list of tensors whose length is known at every node; what an operator does with it is done to the list.
Tensors of one shape may be chosen by a position that is computed; where to insert or erase has to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.graph.matching import NeedsConstant
from smartmem_rules.graph.weights import Values
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported

Process = Callable[[Sequence[onnx.NodeProto], Collection[str]], None]
"""Imports nodes in order, given the tensors that are read."""
Body = Callable[[onnx.GraphProto, str, Mapping[str, str]], list[str]]
"""Imports a body under a prefix, its inputs given; the names of its outputs."""

_MOST_MEMBERS = 4096
"""Longer sequences make plans that nobody can wait for."""
_MAKERS = frozenset({"Optional", "SequenceConstruct", "SequenceEmpty", "SplitToSequence"})
_TAKERS = frozenset({
    "ConcatFromSequence", "SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap"
})  # fmt: skip


def knows_lists(node: onnx.NodeProto) -> bool:
    """Whether a node's operator is one of those that make sequences or take them apart."""
    return domain_of(node.domain) == DEFAULT_DOMAIN and node.op_type in _MAKERS | _TAKERS


@dataclass
class Lists:
    """The sequences and the absent optional values of an import.

    Attributes:
        values: the known tensors.
        missing: tensors that could not be imported.
        new: a name that no tensor of the model or of the import has, as near as can be to a given one.
        members: the tensors that each sequence holds.
        absent: optional values that hold nothing.
    """

    values: Values
    missing: Collection[str]
    new: Callable[[str], str]
    members: dict[str, list[str]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether a node makes or reads sequences or absent values."""
        if domain_of(node.domain) != DEFAULT_DOMAIN:
            return False
        return node.op_type in _MAKERS or any(name in self.members or name in self.absent for name in node.input)

    def refuse_outputs(self, outputs: Sequence[str]) -> None:
        """Nothing, where the outputs of a model are tensors.

        Raises:
            GraphError: some are sequences or absent optional values.
        """
        found = [repr(name) for name in outputs if name in self.members or name in self.absent]
        if found:
            raise GraphError(
                f"the model's outputs {', '.join(found)} are sequences or empty optional values; only tensors can be "
                "outputs: name the members (SequenceAt) or join them (ConcatFromSequence)"
            )

    def unfold(self, node: onnx.NodeProto, process: Process, body: Body) -> None:
        """Import what a node does with sequences or optional values.

        Raises:
            NeedsConstant: its course depends on a tensor that is not known.
            Unsupported: the operator takes no sequences, or the sequence has no such member.
        """
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        _Unfolding(lists=self, node=node, attributes=attributes, process=process, body=body).run()


@dataclass(kw_only=True)
class _Unfolding:
    lists: Lists
    node: onnx.NodeProto
    attributes: Mapping[str, Any]
    process: Process
    body: Body

    def run(self) -> None:
        steps: dict[str, Callable[[], None]] = {
            "Optional": self._same, "OptionalGetElement": self._same, "Identity": self._same,
            "OptionalHasElement": self._is_there,
            "SequenceConstruct": self._construct, "SequenceEmpty": self._construct,
            "SequenceAt": self._at, "SequenceInsert": self._insert, "SequenceErase": self._erase,
            "SequenceLength": self._length, "ConcatFromSequence": self._join, "SplitToSequence": self._split,
            "SequenceMap": self._map,
        }  # fmt: skip
        if self.node.op_type not in steps:
            raise Unsupported("it takes neither sequences nor optional values")
        steps[self.node.op_type]()

    @property
    def output(self) -> str:
        return str(self.node.output[0])

    def _members(self, place: int = 0) -> list[str]:
        name = self.node.input[place]
        if name not in self.lists.members:
            raise Unsupported(f"{name!r} is no sequence that is known at import")
        return self.lists.members[name]

    def _emit(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        node = helper.make_node(operator, inputs, outputs, f"{outputs[0]}/{operator}", **attributes)
        self.process([node], set(outputs))

    # --- optional values ---

    def _same(self) -> None:
        source = self.node.input[0] if self.node.input else ""
        if source in self.lists.members:
            self.lists.members[self.output] = list(self.lists.members[source])
        elif source and source not in self.lists.absent:
            self._emit("Identity", [source], [self.output])
        elif self.node.op_type == "OptionalGetElement":
            raise Unsupported(f"the optional value {source!r} is empty")
        else:
            self.lists.absent.add(self.output)

    def _is_there(self) -> None:
        self.lists.values[self.output] = np.asarray(self.node.input[0] not in self.lists.absent)

    # --- sequences ---

    def _construct(self) -> None:
        self.lists.members[self.output] = list(self.node.input)

    def _position(self, place: int, positions: int, default: int) -> int:
        """The position that an input holds, which is one of `positions`; negative ones count from the end."""
        if len(self.node.input) <= place or not self.node.input[place]:
            return default
        name = self.node.input[place]
        if name not in self.lists.values:
            raise NeedsConstant(f"its position {name!r} is computed", {name})
        given = int(np.asarray(self.lists.values[name]).reshape(-1)[0])
        position = given + positions if given < 0 else given
        if not 0 <= position < positions:
            raise Unsupported(f"position {given} is outside of the sequence, which has {len(self._members())} members")
        return position

    def _at(self) -> None:
        members, position = self._members(), self.node.input[1]
        if position in self.lists.values:
            self._emit("Identity", [members[self._position(1, len(members), 0)]], [self.output])
            return
        if any(name in self.lists.missing for name in members) or not members:
            raise Unsupported("a member of the sequence cannot be imported")
        if len({self.lists.values.types[name] for name in members}) > 1:
            raise NeedsConstant(f"the members differ in shape and the position {position!r} is computed", {position})
        stacked = self.lists.new(f"{self.output}/members")
        self._stack(members, stacked, 0)
        self._emit("Gather", [stacked, position], [self.output], axis=0)

    def _insert(self) -> None:
        members = list(self._members())
        # a negative position counts from the end of the sequence as it was
        position = (
            self._position(2, len(members) + 1, len(members))
            if not self._negative(2)
            else self._position(2, len(members), 0)
        )
        self.lists.members[self.output] = [*members[:position], self.node.input[1], *members[position:]]

    def _negative(self, place: int) -> bool:
        name = self.node.input[place] if len(self.node.input) > place else ""
        return name in self.lists.values and bool(np.asarray(self.lists.values[name]).reshape(-1)[0] < 0)

    def _erase(self) -> None:
        members = list(self._members())
        del members[self._position(1, len(members), len(members) - 1)]
        self.lists.members[self.output] = members

    def _length(self) -> None:
        self.lists.values[self.output] = np.asarray(len(self._members()), np.int64)

    def _join(self) -> None:
        members, axis = self._members(), int(self.attributes["axis"])
        if not members:
            raise Unsupported("an empty sequence has nothing to join")
        if self.attributes.get("new_axis", 0):
            self._stack(members, self.output, axis)
        else:
            self._emit("Concat", members, [self.output], axis=axis)

    def _stack(self, members: Sequence[str], output: str, axis: int) -> None:
        """Join tensors along a new axis."""
        widened = [self.lists.new(f"{output}/{number}") for number in range(len(members))]
        for member, wide in zip(members, widened, strict=True):
            self._emit("Unsqueeze", [member], [wide], axes=[axis])
        self._emit("Concat", widened, [output], axis=axis)

    def _split(self) -> None:
        source = self.node.input[0]
        if source in self.lists.missing:
            raise Unsupported(f"{source!r} cannot be imported")
        shape, axis = self.lists.values.types[source].shape, int(self.attributes.get("axis", 0))
        if not -len(shape) <= axis < len(shape):
            raise Unsupported(f"axis {axis} of a tensor with {len(shape)} axes")
        extent = shape[axis]
        sizes = self._sizes(extent)
        if len(sizes) > _MOST_MEMBERS:
            raise Unsupported(f"a sequence of more than {_MOST_MEMBERS} members")
        given = len(self.node.input) > 1 and bool(self.node.input[1])
        parts = [self.lists.new(f"{self.output}/{number}") for number in range(len(sizes))]
        if parts:
            self._emit("Split", [source], parts, axis=axis, split=sizes)
        if not given and not self.attributes.get("keepdims", 1):
            narrow = [self.lists.new(f"{part}/narrow") for part in parts]
            for part, result in zip(parts, narrow, strict=True):
                self._emit("Squeeze", [part], [result], axes=[axis])
            parts = narrow
        self.lists.members[self.output] = parts

    def _sizes(self, extent: int) -> list[int]:
        name = self.node.input[1] if len(self.node.input) > 1 else ""
        if not name:
            return [1] * extent
        if name not in self.lists.values:
            raise NeedsConstant(f"its sizes {name!r} are computed", {name})
        sizes = np.asarray(self.lists.values[name])
        if sizes.ndim:
            return [int(size) for size in sizes]
        size = int(sizes)
        if size <= 0:
            raise Unsupported(f"parts of {size} elements")
        return [min(size, extent - start) for start in range(0, extent, size)]

    def _map(self) -> None:
        """The body for every member of the first sequence; further sequences go along, tensors stay the same."""
        body = self.attributes["body"]
        results: list[list[str]] = [[] for _ in self.node.output]
        names = [value.name for value in body.input]
        for number in range(len(self._members())):
            given = {}
            for name, source in zip(names, self.node.input, strict=True):
                among = self.lists.members.get(source)
                if among is not None and number >= len(among):
                    raise Unsupported(f"the sequence {source!r} is shorter than {self.node.input[0]!r}")
                given[name] = source if among is None else among[number]
            for gathered, result in zip(results, self.body(body, f"{self.output}/{number}/", given), strict=True):
                gathered.append(result)
        self.lists.members.update(zip(self.node.output, results, strict=True))


__all__ = ["Lists", "knows_lists"]
