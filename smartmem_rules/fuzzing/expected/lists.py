"""Sequences and optional values on a model's course: the tensors that they hold, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.records import dataclass

_OPERATORS = frozenset({
    "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence",
})  # fmt: skip


@dataclass(kw_only=True)
class Lists:
    """What sequences and optional values hold.

    Attributes:
        value: gives a tensor's array.
        constant: names an array, which becomes a tensor.
        step: computes a node.
        joined: names a tensor of parts that are joined along a new axis.
        members: the tensors of each sequence.
        absent: optional values that hold nothing.
    """

    value: Callable[[str], Array]
    constant: Callable[[str, Array], str]
    step: Callable[[onnx.NodeProto], None]
    joined: Callable[[Sequence[str], int], str]
    members: dict[str, list[str]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether a node makes or reads sequences or optional values."""
        if node.domain not in ("", "ai.onnx"):
            return False
        held = any(n in self.members or n in self.absent for n in node.input)
        return node.op_type in _OPERATORS or (node.op_type == "Identity" and held)

    def follow(self, node: onnx.NodeProto, output: str) -> str:
        """The name of what a node gives: a tensor, a sequence or an absent value.

        Args:
            output: a name that nothing has yet.

        Raises:
            NoReference: ONNX does not say what the node gives, such as a member that the sequence does not have.
        """
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        operands = [*node.input, "", ""]
        match node.op_type:
            case "Identity" | "Optional" | "OptionalGetElement":
                return self._held(node.op_type, operands[0], output)
            case "OptionalHasElement":
                return self.constant(output, np.asarray(bool(operands[0]) and operands[0] not in self.absent))
            case "SequenceLength":
                return self.constant(output, np.asarray(len(self._of(operands[0])), np.int64))
            case "SequenceAt":
                members = self._of(operands[0])
                return members[self._place(operands[1], len(members) - 1, len(members))]
            case "ConcatFromSequence":
                return self._concatenated(self._of(operands[0]), given, output)
            case _:
                self.members[output] = self._made(node.op_type, operands, given, output)
                return output

    def _of(self, name: str) -> list[str]:
        if name not in self.members:
            raise NoReference(f"{name!r} is no sequence")
        return self.members[name]

    def _held(self, operator: str, source: str, output: str) -> str:
        if source and source not in self.absent:
            return source
        if operator == "OptionalGetElement":
            raise NoReference("an optional value that is absent")
        self.absent.add(output)
        return output

    def _made(self, operator: str, operands: Sequence[str], given: dict[str, Any], output: str) -> list[str]:
        """The members of a sequence that a node makes."""
        if operator in ("SequenceConstruct", "SequenceEmpty"):
            return [n for n in operands if n]
        if operator == "SplitToSequence":
            return self._parts(operands[0], operands[1], given, output)
        members = list(self._of(operands[0]))
        if operator == "SequenceErase":
            del members[self._place(operands[1], len(members) - 1, len(members))]
        else:
            members.insert(self._place(operands[2], len(members), len(members) + 1, len(members)), operands[1])
        return members

    def _place(self, name: str, default: int, places: int, turn: int | None = None) -> int:
        """The place that a tensor holds; negative ones count from the end, which is at `turn`."""
        found = int(self.value(name).reshape(-1)[0]) if name else default
        found += (places if turn is None else turn) if found < 0 else 0
        if not 0 <= found < places:
            raise NoReference("a place outside of a sequence")
        return found

    def _concatenated(self, members: Sequence[str], given: dict[str, Any], output: str) -> str:
        if not members:
            raise NoReference("an empty sequence is joined")
        if given.get("new_axis"):
            if len({self.value(n).shape for n in members}) > 1:
                raise NoReference("members of different shapes are stacked")
            return self.joined(members, given["axis"])
        self.step(helper.make_node("Concat", members, [output], axis=given["axis"]))
        return output

    def _parts(self, source: str, sizes: str, given: dict[str, Any], output: str) -> list[str]:
        axis = given.get("axis", 0)
        extent = self.value(source).shape[axis]
        many = self.value(sizes) if sizes else np.asarray(1)
        size = int(many) if many.ndim == 0 else 0
        if many.ndim == 0 and size <= 0:
            raise NoReference("parts of no element")
        ends = np.cumsum(many) if many.ndim else np.arange(size, extent + size, size).clip(max=extent)
        if many.ndim and (ends[-1:].sum() != extent or (many < 0).any()):
            raise NoReference("parts that are not the whole")
        made = []
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            bounds = [
                self.constant(f"{output}/{number}/{word}", np.asarray([place], np.int64))
                for word, place in (("start", start), ("end", end), ("axis", axis))
            ]
            made.append(f"{output}/{number}")
            self.step(helper.make_node("Slice", [source, *bounds], [made[-1]]))
            if not sizes and not given.get("keepdims", 1):
                made[-1] = self._without(made[-1], axis)
        return made

    def _without(self, part: str, axis: int) -> str:
        shape = list(self.value(part).shape)
        del shape[axis]
        wanted = self.constant(f"{part}/shape", np.asarray(shape, np.int64))
        zero: dict[str, Any] = {"allowzero": 1} if 0 in shape else {}
        self.step(helper.make_node("Reshape", [part, wanted], [f"{part}/narrow"], **zero))
        return f"{part}/narrow"
