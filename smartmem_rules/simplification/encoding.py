"""Models as bytes, tensor by tensor: to encode one as a whole would take as much memory again."""

from __future__ import annotations

from typing import IO

import onnx
from google.protobuf.message import Message

from smartmem_rules.graph.weights import graph_tensors, is_external, stored_bytes

_WITH_LENGTH = 2
"""The kind of fields that begin with their length (Protocol Buffers, Encoding, "Message structure")."""


def size_of_files(model: onnx.ModelProto) -> int:
    """The bytes of a model's file and of what it uses of its data files."""
    external = (tensor for _, tensor in graph_tensors(model.graph) if is_external(tensor))
    return encoded_bytes(model) + sum(map(stored_bytes, external))


def encoded_bytes(model: onnx.ModelProto) -> int:
    """The bytes of a model's file, as protobuf encodes it: what `ByteSize` says."""
    rest = _without(model, "graph").ByteSize()
    if not model.HasField("graph"):
        return int(rest)
    graph = _graph_bytes(model.graph, _without(model.graph, "initializer").ByteSize())
    return int(rest + len(_header(model, "graph", graph)) + graph)


def write_encoded(model: onnx.ModelProto, stream: IO[bytes]) -> None:
    """Write a model as protobuf encodes it, but for the order of its fields, which is free.

    Raises:
        OSError: it cannot be written.
    """
    stream.write(_without(model, "graph").SerializeToString())
    if not model.HasField("graph"):
        return
    rest = _without(model.graph, "initializer").SerializeToString()
    stream.write(_header(model, "graph", _graph_bytes(model.graph, len(rest))))
    stream.write(rest)
    for tensor in model.graph.initializer:
        encoded = tensor.SerializeToString()
        stream.write(_header(model.graph, "initializer", len(encoded)))
        stream.write(encoded)


def _graph_bytes(graph: onnx.GraphProto, rest: int) -> int:
    """The bytes of a graph, those of all but its initializers given."""
    lengths = (tensor.ByteSize() for tensor in graph.initializer)
    return rest + sum(len(_header(graph, "initializer", length)) + int(length) for length in lengths)


def _header(message: Message, field: str, length: int) -> bytes:
    """What stands before a message of this length within another: the field's number and kind, and the length."""
    number = message.DESCRIPTOR.fields_by_name[field].number
    return _varint(number << 3 | _WITH_LENGTH) + _varint(length)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that another byte follows."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _without(message: Message, left_out: str) -> Message:
    """A copy of a message without one of its fields."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == left_out:
            continue
        there = getattr(copy, field.name)
        if hasattr(there, "extend"):
            there.extend(value)
        elif isinstance(there, Message):
            there.CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy
