"""Nodes of old operator sets in the form that the definitions of the rule base take.

Until opset 6 binary operators broadcast by attributes, `Cast` named its dtype in words, and some attributes had other
names; later ones became operands.  What changed stands in tables here, with the last opset that has the old form
(ONNX's changelog of operators).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.graph.matching import NeedsConstant
from smartmem_rules.graph.weights import Values
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import TensorType

NEWEST_OLD_OPSET = 13
"""The last operator set in which an operator has a form that no definition takes."""
BROADCAST_BY_RULE = 7
"""The first operator set whose binary operators broadcast by the shapes alone."""

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_ONCE_IN_PLACE = (
    "Abs", "Add", "BatchNormalization", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor", "HardSigmoid",
    "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu", "Reciprocal", "Relu",
    "Reshape", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OldAttributes:
    """How the attributes of operators differ up to an opset.

    `dropped` meant nothing for the result, `renamed` go from the old name to the new one, `defaults` hold where the
    attribute is absent, `whole` were floats that have to be whole numbers.
    """

    operators: tuple[str, ...]
    until: int
    dropped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    whole: tuple[str, ...] = ()


OLD_ATTRIBUTES = (
    OldAttributes(operators=_ONCE_IN_PLACE, until=5, dropped=("consumed_inputs",)),
    OldAttributes(operators=("Gemm",), until=6, dropped=("broadcast",)),
    OldAttributes(operators=("GRU", "LSTM", "RNN"), until=6, dropped=("output_sequence",)),
    OldAttributes(operators=("Concat",), until=3, defaults={"axis": 1}),
    OldAttributes(operators=("GlobalLpPool", "LpPool"), until=1, whole=("p",)),
    OldAttributes(operators=("Pad",), until=1, renamed={"paddings": "pads"}),
    OldAttributes(operators=("Pad",), until=10, renamed={"value": "constant_value"}),
)


RENAMED: Mapping[str, tuple[int, str]] = {"Scatter": (10, "ScatterElements")}
"""Operators that have another name since: the last opset with the old name, and the new one."""


def is_renamed(node: onnx.NodeProto, opset: int) -> bool:
    """Whether a node's operator is known by another name only."""
    until, _ = RENAMED.get(node.op_type, (None, ""))
    return domain_of(node.domain) == DEFAULT_DOMAIN and until is not None and opset <= until


@dataclass(frozen=True)
class Known:
    """What is known of a node's operands, their types and the values of some, and `new` tells names that none has."""

    types: Mapping[str, TensorType]
    values: Values
    new: Callable[[str], str]


def current_form(node: onnx.NodeProto, opset: int, known: Known) -> list[onnx.NodeProto]:
    """The nodes that stand for one of an old operator set, the last of them with its outputs.

    Args:
        opset: the version of ai.onnx that the node is of.
        known: types of all of the node's inputs, values of some.

    Raises:
        Unsupported: the node cannot be said in the newer form.
    """
    if opset > NEWEST_OLD_OPSET or domain_of(node.domain) != DEFAULT_DOMAIN:
        return [node]
    changes = [c for c in OLD_ATTRIBUTES if node.op_type in c.operators and opset <= c.until]
    adapters = [adapt for names, until, adapt in _ADAPTERS if node.op_type in names and opset <= until]
    if not changes and not adapters and not is_renamed(node, opset):
        return [node]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    for change in changes:
        attributes = _changed(attributes, change)
    operator = RENAMED[node.op_type][1] if is_renamed(node, opset) else node.op_type
    form = _Form(node=node, operator=operator, attributes=attributes, inputs=list(node.input), known=known)
    for adapt in adapters:
        adapt(form)
    return form.nodes()


def _changed(attributes: Mapping[str, Any], change: OldAttributes) -> dict[str, Any]:
    result: dict[str, Any] = dict(change.defaults)
    result.update((change.renamed.get(n, n), v) for n, v in attributes.items() if n not in change.dropped)
    for name in change.whole:
        if name in result:
            if result[name] != int(result[name]):
                raise Unsupported(f"its {name} is {result[name]}; only whole numbers can be taken")
            result[name] = int(result[name])
    return result


@dataclass(kw_only=True)
class _Form:
    """A node while it is brought into the newer form."""

    node: onnx.NodeProto
    operator: str
    attributes: dict[str, Any]
    inputs: list[str]
    known: Known
    before: list[onnx.NodeProto] = field(default_factory=list)

    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes that the newer form consists of."""
        copy = helper.make_node(self.operator, self.inputs, list(self.node.output), self.node.name)
        copy.attribute.extend(helper.make_attribute(name, value) for name, value in self.attributes.items())
        return [*self.before, copy]

    def operand(self, place: int) -> str:
        """The name of an operand that the older form needs. Raises Unsupported: the node leaves it out."""
        name = self.inputs[place] if place < len(self.inputs) else ""
        if not name:
            raise Unsupported(f"{self.node.op_type} needs its input {place + 1}, which is left out")
        return name

    def rank(self, place: int) -> int:
        return len(self.shape(place))

    def shape(self, place: int) -> tuple[int, ...]:
        return self.known.types[self.operand(place)].shape

    def widen(self, place: int, trailing: int) -> None:
        """Give an operand further axes of extent 1 at its end."""
        if trailing <= 0:
            return
        rank = self.rank(place)
        axes = list(range(rank, rank + trailing))
        widened = self.known.new(f"{self.node.output[0]}/{self.inputs[place]}")
        self.before.append(
            helper.make_node("Unsqueeze", [self.inputs[place]], [widened], f"{widened}/Unsqueeze", axes=axes)
        )
        self.inputs[place] = widened


def _aligned_broadcast(form: _Form) -> None:
    """The second operand spans the first one's axes from `axis` on, or its last ones."""
    broadcast, axis = form.attributes.pop("broadcast", 0), form.attributes.pop("axis", None)
    first, second = form.shape(0), form.shape(1)
    if not broadcast:
        if first != second:
            raise Unsupported(
                f"its operands have the shapes {list(first)} and {list(second)}; before opset {BROADCAST_BY_RULE} they "
                "broadcast only with the attribute broadcast = 1"
            )
        return
    if axis is None:
        axis = len(first) - len(second)
    elif axis < 0:
        axis += len(first)
    spanned = first[axis : axis + len(second)]
    if axis < 0 or len(spanned) < len(second) or any(b not in (1, a) for a, b in zip(spanned, second, strict=True)):
        raise Unsupported(f"its second operand of shape {list(second)} does not fit {list(first)} from axis {axis} on")
    form.widen(1, len(first) - axis - len(second))


def _channel_slope(form: _Form) -> None:
    """A slope of rank 1 belongs to the channels, axis 1."""
    if form.rank(1) == 1 and form.shape(1) != (1,):
        form.widen(1, form.rank(0) - 2)


def _dtype_in_words(form: _Form) -> None:
    name = form.attributes.get("to", b"")
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    codes = dict(onnx.TensorProto.DataType.items())
    if text.upper() not in codes:
        raise Unsupported(f"its attribute to is {text!r}, which is no dtype")
    form.attributes["to"] = codes[text.upper()]


def _tested_dropout(form: _Form) -> None:
    if not form.attributes.pop("is_test", 0) and form.attributes.get("ratio", 0.5):
        raise Unsupported("it drops elements at random (is_test = 0); export the model for inference")


def _trained_statistics(form: _Form) -> None:
    """Further outputs than the first say that the statistics are those of the batch."""
    tested = form.attributes.pop("is_test", 0)
    if len([name for name in form.node.output if name]) > 1 and not tested:
        form.attributes["training_mode"] = 1


def _two_scales(form: _Form) -> None:
    scales = [form.attributes.pop("height_scale", None), form.attributes.pop("width_scale", None)]
    if None in scales or form.rank(0) != 4:
        raise Unsupported("it needs an input of rank 4, height_scale and width_scale")
    form.attributes["scales"] = [1.0, 1.0, *scales]


def _scaled_from_corners(form: _Form) -> None:
    """Resize before it had modes: a place is divided by its scale, and cut off, or rounded up where the axis shrinks.

    ONNX says nothing of the direction; so has it ONNX Runtime (`NearestMode::SIMPLE`).
    """
    scales = form.operand(1)
    if scales not in form.known.values:
        raise NeedsConstant(f"Resize needs scales as a constant, but {scales!r} is computed", {scales})
    factors = np.asarray(form.known.values[scales])
    if form.attributes.get("mode", b"nearest") == b"nearest":
        moved = factors[factors != 1]
        if (moved > 1).any() and (moved < 1).any():
            raise Unsupported("it lengthens one axis and shortens another by the nearest elements")
        form.attributes["nearest_mode"] = "ceil" if (moved < 1).any() else "floor"
    form.attributes["coordinate_transformation_mode"] = "asymmetric"
    form.inputs = [form.inputs[0], "", scales]


def _tiles_of_one_axis(form: _Form) -> None:
    """Tile with `tiles` and `axis`, two scalars, instead of a number for each axis."""
    if len(form.inputs) != 3:
        return
    for name in form.inputs[1:]:
        if name not in form.known.values:
            raise Unsupported(f"Tile needs {name!r} as a constant")
    tiles, axis = (int(np.asarray(form.known.values[name]).reshape(-1)[0]) for name in form.inputs[1:])
    repeats = [1] * form.rank(0)
    repeats[axis] = tiles
    form.inputs = form.inputs[:1]
    form.attributes["repeats"] = repeats


_Adapter = Callable[[_Form], None]
_ADAPTERS: Sequence[tuple[tuple[str, ...], int, _Adapter]] = (
    (_BINARY, BROADCAST_BY_RULE - 1, _aligned_broadcast),
    (("PRelu",), 6, _channel_slope),
    (("Cast",), 5, _dtype_in_words),
    (("Dropout",), 6, _tested_dropout),
    (("BatchNormalization",), 13, _trained_statistics),
    (("Upsample",), 6, _two_scales),
    (("Resize",), 10, _scaled_from_corners),
    (("Tile",), 5, _tiles_of_one_axis),
)

__all__ = ["NEWEST_OLD_OPSET", "OLD_ATTRIBUTES", "Known", "OldAttributes", "current_form"]
