"""Damage to the fields of protobuf messages: each drawn field gets a value that no exporter writes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.damage.data import extreme_text

_INTEGERS = (0, 1, -1, 2, 3, 5, 7, 17, 255, 4096, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**31), -(2**63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38)
_MOST_PLACES = 3000


def damaged_model(data: bytes, other: bytes, draw: random.Random) -> onnx.ModelProto:
    """A model of which some fields were changed; `other` is a model whose parts may be put into it."""
    model, donor = onnx.ModelProto.FromString(data), onnx.ModelProto.FromString(other)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        match draw.randrange(10):
            case 0:
                _rewire(model, draw)
            case 1:
                _nodes(model, donor, draw)
            case _:
                _field(model, donor, draw)
    return model


def _places(message: Message, depth: int = 0) -> Iterator[tuple[Message, FieldDescriptor]]:
    """All fields that are set, with the message that holds each."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is not None and depth < 12:
            for inner in value if field.is_repeated else [value]:
                yield from _places(inner, depth + 1)


def _all_places(message: Message) -> list[tuple[Message, FieldDescriptor]]:
    return [place for place, _ in zip(_places(message), range(_MOST_PLACES), strict=False)]


def _field(model: onnx.ModelProto, donor: onnx.ModelProto, draw: random.Random) -> None:
    places = _all_places(model)
    if not places:  # earlier changes took every field away
        return
    holder, field = draw.choice(places)
    if draw.randrange(8) == 0:
        holder.ClearField(field.name)
        return
    if draw.randrange(8) == 0:  # a field that was not set
        field = draw.choice(holder.DESCRIPTOR.fields)
    if field.message_type is not None:
        _message(holder, field, donor, draw)
    elif field.is_repeated:
        _list(getattr(holder, field.name), field, draw)
    else:
        setattr(holder, field.name, _value(field, getattr(holder, field.name), draw))


def _message(holder: Message, field: FieldDescriptor, donor: onnx.ModelProto, draw: random.Random) -> None:
    kind = field.message_type.full_name
    parts = [
        one
        for owner, other in _all_places(donor)
        if other.message_type is not None and other.message_type.full_name == kind
        for one in (getattr(owner, other.name) if other.is_repeated else [getattr(owner, other.name)])
    ]
    value: Any = getattr(holder, field.name)
    if not field.is_repeated:
        if parts:
            value.CopyFrom(draw.choice(parts))
        else:
            value.SetInParent()
        return
    match draw.randrange(5):
        case 0 if len(value):
            del value[draw.randrange(len(value))]
        case 1 if len(value):
            value.add().CopyFrom(value[draw.randrange(len(value))])
        case 2 if len(value) > 1:
            one, two = draw.randrange(len(value)), draw.randrange(len(value))
            copy = type(value[one])()
            copy.CopyFrom(value[one])
            value[one].CopyFrom(value[two])
            value[two].CopyFrom(copy)
        case 3 if parts:
            value.add().CopyFrom(draw.choice(parts))
        case _:
            value.add()


def _list(values: Any, field: FieldDescriptor, draw: random.Random) -> None:
    match draw.randrange(6):
        case 0 if len(values):
            del values[draw.randrange(len(values))]
        case 1 if len(values):
            values.append(values[draw.randrange(len(values))])
        case 2 | 3 if len(values):
            place = draw.randrange(len(values))
            values[place] = _value(field, values[place], draw)
        case 4:
            values.extend([_value(field, 0, draw)] * draw.choice((1, 2, 9, 70)))
        case _:
            values.append(_value(field, 0, draw))


def _value(field: FieldDescriptor, old: Any, draw: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            known = bytes(old) if isinstance(old, bytes) else b""
            return draw.choice((b"", known[:-1], known + b"\x80", b"\xff\xfe", b"nearest", known * 3))
        case FieldDescriptor.CPPTYPE_STRING:
            known = old if isinstance(old, str) else ""
            text = extreme_text(draw).replace("\ud800", "x")
            return draw.choice((text, known + text, known[:-1], "Add", "Loop", "../../etc/passwd", "/dev/zero"))
        case FieldDescriptor.CPPTYPE_ENUM:
            return draw.choice([value.number for value in field.enum_type.values])
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return draw.choice(_FLOATS)
        case FieldDescriptor.CPPTYPE_INT32:
            small = [number for number in _INTEGERS if -(2**31) <= number < 2**31]
            return draw.choice([*small, *range(30)])
        case FieldDescriptor.CPPTYPE_UINT64:
            return draw.choice([abs(number) for number in _INTEGERS])
        case _:
            near = [old + 1, old - 1, -old, old * 2] if isinstance(old, int) and abs(old) < 2**60 else []
            return draw.choice([*_INTEGERS, *near])


def _rewire(model: onnx.ModelProto, draw: random.Random) -> None:
    """Let a node read or write another tensor: cycles, tensors defined twice, wrong types."""
    nodes = [node for node in model.graph.node if len(node.input) or len(node.output)]
    names = [name for node in nodes for name in (*node.input, *node.output)]
    names += [tensor.name for tensor in model.graph.initializer]
    if not nodes:
        return
    node = draw.choice(nodes)
    side = node.output if draw.randrange(3) == 0 and len(node.output) else node.input
    if len(side):
        side[draw.randrange(len(side))] = draw.choice(names)
    else:
        side.append(draw.choice(names))


def _nodes(model: onnx.ModelProto, donor: onnx.ModelProto, draw: random.Random) -> None:
    """Another operator on the operands of a node: attributes and operands that it does not take."""
    nodes = list(model.graph.node)
    others = list(donor.graph.node)
    if not nodes or not others:
        return
    node, other = draw.choice(nodes), draw.choice(others)
    match draw.randrange(3):
        case 0:
            node.op_type, node.domain = other.op_type, other.domain
        case 1:
            del node.attribute[:]
            node.attribute.extend(other.attribute)
        case _:
            whole = onnx.GraphProto()  # copied first: a message that is copied into itself ends the process
            whole.CopyFrom(model.graph if draw.randrange(2) else donor.graph)
            node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g.CopyFrom(whole)
