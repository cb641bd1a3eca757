"""Models as bytes, tensor by tensor: to encode one as a whole would take as much memory again."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import Message

from smartmem_rules.graph.weights import graph_tensors, is_external, location, stored_bytes
from smartmem_rules.simplification.options import SimplifyError

WITH_LENGTH = 2
"""The kind of fields that begin with their length (Protocol Buffers, Encoding, "Message structure")."""
INSIDE = "smartmem.inside"
"""An entry of a tensor's place that says: in the model's own file, and to be written into that of the result.

Its value is `SAID` if the tensor says in so many words that it holds its data itself."""
SAID = "said"
_AFTER_DATA = ("doc_string", "data_location", "metadata_props")
"""The fields of a tensor that protobuf writes behind its data."""
PIECE = 1 << 20
"""Bytes that are copied at once."""


def size_of_files(model: onnx.ModelProto) -> int:
    """The bytes of a model's file and of what it uses of its data files."""
    tensors = (tensor for _, tensor in graph_tensors(model.graph))
    external = (tensor for tensor in tensors if is_external(tensor) and not is_inside(tensor))
    return encoded_bytes(model) + sum(map(stored_bytes, external))


def encoded_bytes(model: onnx.ModelProto) -> int:
    """The bytes of a model's file, as protobuf encodes it: what `ByteSize` says."""
    rest = _without(model, "graph").ByteSize()
    if not model.HasField("graph"):
        return int(rest)
    graph = _graph_bytes(model.graph, _without(model.graph, "initializer").ByteSize())
    return int(rest + len(_header(model, "graph", graph)) + graph)


def write_encoded(model: onnx.ModelProto, stream: IO[bytes], folder: Path | None = None) -> None:
    """Write a model as protobuf encodes it, but for the order of its fields, which is free.

    Args:
        folder: of the file in which the data of tensors were left.

    Raises:
        OSError: it cannot be written.
        SimplifyError: a file ends before the data that are said to be in it.
    """
    stream.write(_without(model, "graph").SerializeToString())
    if not model.HasField("graph"):
        return
    rest = _without(model.graph, "initializer").SerializeToString()
    stream.write(_header(model, "graph", _graph_bytes(model.graph, len(rest))))
    stream.write(rest)
    for tensor in model.graph.initializer:
        stream.write(_header(model.graph, "initializer", _tensor_bytes(tensor)))
        if not is_inside(tensor):
            stream.write(tensor.SerializeToString())
            continue
        before, behind = _around_data(tensor)
        stream.write(before)
        copy_range(tensor, folder, stream)
        stream.write(behind)


def is_inside(tensor: onnx.TensorProto) -> bool:
    """Whether the data of a tensor were left in the model's own file (`in_place`)."""
    return any(entry.key == INSIDE for entry in tensor.external_data)


def without_place(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """A tensor that was left in its file as it stands there, but for its data."""
    made = onnx.TensorProto()
    made.CopyFrom(tensor)
    made.ClearField("external_data")
    made.ClearField("data_location")
    if location(tensor).get(INSIDE) == SAID:
        made.data_location = onnx.TensorProto.DEFAULT
    return made


def copy_range(tensor: onnx.TensorProto, folder: Path | None, stream: IO[bytes]) -> None:
    """Copy the data of a tensor out of a file.

    Raises:
        OSError: they cannot be read or written.
        SimplifyError: the file ends before they do, or there is no folder to look in.
    """
    entries = location(tensor)
    left = int(entries.get("length", stored_bytes(tensor)))
    if folder is None:
        raise SimplifyError(f"the data of {tensor.name!r} lie in a file, and a ModelProto has no folder to look in")
    path = folder / entries["location"]
    with open(path, "rb") as data:
        data.seek(int(entries.get("offset", 0)))
        while left:
            piece = data.read(min(PIECE, left))
            if not piece:
                raise SimplifyError(f"{path}: it ends before the data of {tensor.name!r}")
            stream.write(piece)
            left -= len(piece)


def _around_data(tensor: onnx.TensorProto) -> tuple[bytes, bytes]:
    """What protobuf writes before and behind the data of a tensor whose data were left in a file."""
    whole = without_place(tensor)
    encoded = whole.SerializeToString()
    for name in _AFTER_DATA:
        whole.ClearField(name)
    first = whole.ByteSize()
    return encoded[:first] + _header(tensor, "raw_data", stored_bytes(tensor)), encoded[first:]


def _tensor_bytes(tensor: onnx.TensorProto) -> int:
    if not is_inside(tensor):
        return int(tensor.ByteSize())
    return sum(map(len, _around_data(tensor))) + stored_bytes(tensor)


def _graph_bytes(graph: onnx.GraphProto, rest: int) -> int:
    """The bytes of a graph, those of all but its initializers given."""
    lengths = map(_tensor_bytes, graph.initializer)
    return rest + sum(len(_header(graph, "initializer", length)) + length for length in lengths)


def _header(message: Message, field: str, length: int) -> bytes:
    """What stands before a message of this length within another: the field's number and kind, and the length."""
    return header(message.DESCRIPTOR.fields_by_name[field].number, length)


def header(number: int, length: int) -> bytes:
    """What stands before the content of a field of this number that has a length."""
    return _varint(number << 3 | WITH_LENGTH) + _varint(length)


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
