"""Models whose large weights stay in the model's own file: what is parsed refers to them as to data in a data file.

A weight that is parsed is held three times: in the file's bytes, in the parsed message, and in an array. Here only the
fields around the weights are read (Protocol Buffers, Encoding). Where a file is not built as expected it is parsed as
a whole, and what is wrong with it is said then.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.graph.weights import PACKED_BITS, is_external, location, shaped, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.simplification.encoding import INSIDE, SAID, WITH_LENGTH, header, without_place
from smartmem_rules.tensor.primitives import Array

LARGE = 1 << 16
"""Bytes of the largest weight that is parsed; shape inference looks at none that is larger."""
_GRAPH = onnx.ModelProto.GRAPH_FIELD_NUMBER
_INITIALIZER = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
_RAW_DATA = onnx.TensorProto.RAW_DATA_FIELD_NUMBER
_MOVABLE = frozenset({"dims", "data_type", "name", "doc_string", "data_location", "metadata_props"})
"""The fields of tensors that are left in the file, but for their data."""
_WIDTHS = {1: 8, 5: 4}
_VARINT = 0


class _Unusual(Exception):
    """The file is not built as writers of ONNX models build it."""


@dataclass(frozen=True)
class _Field:
    """A field of a message: where it begins, and where its content lies."""

    number: int
    kind: int
    start: int
    begin: int
    end: int


def read_in_place(path: Path) -> tuple[onnx.ModelProto, Path | None]:
    """The model of a file with its large initializers left there, and the folder of its data files.

    Raises:
        GraphError: there is no such file, or it is no ONNX model.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            model = onnx.ModelProto.FromString(b"".join(_stub(data, path.name)))
    except (_Unusual, DecodeError, OSError, ValueError):
        return load_model(path)
    if not model.HasField("graph") or not model.graph.output:
        return load_model(path)
    return model, path.parent


@dataclass(frozen=True)
class Aside:
    """A file for large weights that were computed, so that they need not be held until the model is written."""

    path: Path

    def tensors(self, arrays: Mapping[str, Array]) -> Iterator[onnx.TensorProto]:
        """The arrays as tensors by name; large ones are written to the file.

        Raises:
            OSError: the file cannot be written.
        """
        with open(self.path, "wb") as stream:
            for name, array in arrays.items():
                begin = stream.tell()
                code = None if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
                if array.nbytes <= LARGE or code is None or code in PACKED_BITS:
                    yield numpy_helper.from_array(array, name)
                    continue
                array.tofile(stream)
                tensor = onnx.TensorProto(name=name, data_type=code, dims=array.shape)
                yield _left(tensor, str(self.path.resolve()), begin, array.nbytes)


def mapped(tensor: onnx.TensorProto, folder: Path) -> Array:
    """The elements of a tensor that was left in its file, which is read where they are looked at.

    Raises:
        GraphError: the file ends before they do.
    """
    entries = location(tensor)
    offset, length = int(entries["offset"]), int(entries["length"])
    path = folder / entries["location"]
    try:
        data = np.memmap(path, np.uint8, "r", offset, (length,)).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise GraphError(
            f"the data of tensor {tensor.name!r} cannot be read ({error}); the model is damaged"
        ) from error
    return shaped(data, tensor)


def _stub(data: mmap.mmap, name: str) -> Iterator[bytes]:
    """The bytes of a model whose large initializers say where in the file `name` they are."""
    found = list(_fields(data, 0, len(data)))
    graphs = [field for field in found if field.number == _GRAPH]
    if len(graphs) != 1:
        raise _Unusual
    for field in found:
        if field is graphs[0]:
            graph = b"".join(_stub_graph(data, field, name))
            yield header(_GRAPH, len(graph)) + graph
        else:
            yield data[field.start : field.end]


def _stub_graph(data: mmap.mmap, graph: _Field, name: str) -> Iterator[bytes]:
    written = graph.begin
    for field in _fields(data, graph.begin, graph.end):
        if field.number != _INITIALIZER or field.end - field.begin <= LARGE:
            continue
        tensor = _placed(data, field, name)
        if tensor is not None:
            encoded = tensor.SerializeToString()
            yield data[written : field.start]
            yield header(_INITIALIZER, len(encoded)) + encoded
            written = field.end
    yield data[written : graph.end]


def _placed(data: mmap.mmap, initializer: _Field, name: str) -> onnx.TensorProto | None:
    """A tensor that says where in the file its data are; None where it has to be parsed as it is."""
    fields = list(_fields(data, initializer.begin, initializer.end))
    raw = [field for field in fields if field.number == _RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].begin <= LARGE:
        return None
    rest = b"".join(data[field.start : field.end] for field in fields if field is not raw[0])
    tensor = onnx.TensorProto.FromString(rest)
    length = raw[0].end - raw[0].begin
    usual = {field.name for field, _ in tensor.ListFields()} <= _MOVABLE and not is_external(tensor)
    if not usual or tensor.data_type in PACKED_BITS or not _fits(tensor, length):
        return None
    _left(tensor, name, raw[0].begin, length)
    # one that is written in another order, or with fields that ONNX does not know, is parsed
    return tensor if without_place(tensor).SerializeToString() == rest else None


def _left(tensor: onnx.TensorProto, place: str, begin: int, length: int) -> onnx.TensorProto:
    """The tensor, which says from now on where its data are."""
    said = SAID if tensor.HasField("data_location") else ""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", place), ("offset", begin), ("length", length), (INSIDE, said)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _fits(tensor: onnx.TensorProto, length: int) -> bool:
    try:
        return all(extent > 0 for extent in tensor.dims) and stored_bytes(tensor) == length
    except KeyError:
        return False


def _fields(data: mmap.mmap, begin: int, end: int) -> Iterator[_Field]:
    """The fields of the message between two places."""
    at = begin
    while at < end:
        start = at
        key, at = _varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == WITH_LENGTH:
            length, at = _varint(data, at, end)
            stop = at + length
        elif kind == _VARINT:
            _, stop = _varint(data, at, end)
        elif kind in _WIDTHS:
            stop = at + _WIDTHS[kind]
        else:
            raise _Unusual
        if stop > end or not number:
            raise _Unusual
        yield _Field(number, kind, start, at, stop)
        at = stop


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A number and where it ends; each byte has seven bits of it, the lowest first."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _Unusual
