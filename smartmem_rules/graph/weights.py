"""The values of an ONNX model's tensors: stored in the file, in a data file beside it, or described by a recipe.

A stripped model keeps its size down by describing big tensors instead of storing them.  Such a tensor is marked as
external, and its location names the recipe: `seeded-normal` draws it from a seeded normal distribution, `zlib-base64`
holds it compressed.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.described import Ahead, Later, Tensors, some
from smartmem_rules.graph.model import GraphError
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.primitives import Array

PACKED_BITS: Mapping[int, int] = {
    onnx.TensorProto.INT4: 4,
    onnx.TensorProto.UINT4: 4,
    onnx.TensorProto.INT2: 2,
    onnx.TensorProto.UINT2: 2,
    onnx.TensorProto.FLOAT4E2M1: 4,
}
"""Element types of which several lie in a byte, and their bits."""
RECIPES = ("seeded-normal", "zlib-base64")
_BACKGROUND_FROM = 1 << 16
_FIRST = 16
_PIECE = 1 << 16
"""Random numbers that are drawn at once: what threads allocate stays with the process, so they allocate little."""


def is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def location(tensor: onnx.TensorProto) -> dict[str, str]:
    """The external data entries of a tensor."""
    return {entry.key: entry.value for entry in tensor.external_data}


def tensor_type(tensor: onnx.TensorProto) -> TensorType:
    return TensorType(dtype_name(tensor.data_type), tuple(tensor.dims))


@cache
def dtype_name(code: int) -> str:
    """The name of an ONNX element type, `string` for text; raises GraphError for a code that ONNX does not have."""
    if code == onnx.TensorProto.STRING:
        return "string"
    try:
        return helper.tensor_dtype_to_np_dtype(code).name
    except KeyError:
        raise GraphError(f"the element type {code} is not one of ONNX; the model is damaged") from None


def array_type(array: Array) -> TensorType:
    return TensorType(_name(array.dtype), array.shape)


@cache
def _name(dtype: np.dtype) -> str:
    return "string" if dtype.kind in "OUS" else dtype.name


def graph_tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """The initializers and the tensors that nodes hold as attributes, subgraphs included, with their names."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield node.output[0] if node.output else node.name, attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from graph_tensors(attribute.g)


def check_data_files(graph: onnx.GraphProto, folder: Path | None) -> tuple[str, ...]:
    """The data files of a model, by their names in its folder.

    Raises:
        GraphError: files are missing; it names each with the tensors that need it.
    """
    missing: dict[str, list[str]] = {}
    found: dict[str, None] = {}
    for name, tensor in graph_tensors(graph):
        if is_external(tensor):
            place = location(tensor).get("location", "")
            if place in RECIPES or place in found:
                continue
            if folder is None or not os.path.isfile(folder / place):
                missing.setdefault(place, []).append(name)
            else:
                found[place] = None
    if not missing:
        return tuple(found)
    lines = [f"  {place}: {_some(names)}" for place, names in missing.items()]
    reason = "bytes and ModelProto have no folder to look in" if folder is None else f"not found in {folder}"
    raise GraphError(
        f"the weights are in data files that are missing ({reason}):\n" + "\n".join(lines) + "\n"
        "put the files beside the model and give the model as a path"
    )


def with_weights(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model without data files, which it takes in; described weights stay described.

    Raises:
        GraphError: a data file is missing or damaged.
    """
    check_data_files(model.graph, folder)
    for name, tensor in graph_tensors(model.graph):
        if is_external(tensor) and location(tensor).get("location") not in RECIPES:
            tensor.raw_data = tensor_value(name, tensor, folder).tobytes()
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT
    return model


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)} tensor{'' if len(names) == 1 else 's'} ({shown}{rest})"


def tensor_value(name: str, tensor: onnx.TensorProto, folder: Path | None, mapped: bool = False) -> Array:
    """The array of a tensor.

    Args:
        name: for messages.
        folder: where the model's data files are, None if it has none.
        mapped: whether what lies in a data file stays there and is read where it is looked at.

    Raises:
        GraphError: the data do not fit the tensor's shape and dtype, or the data file is missing.
    """
    with _readable(name):
        if not is_external(tensor):
            return numpy_helper.to_array(tensor)
        entries = location(tensor)
        if entries["location"] == "seeded-normal":
            return _Normal(tensor, entries).array()
        if entries["location"] == "zlib-base64":
            return shaped(np.frombuffer(_decompressed(entries["data"], stored_bytes(tensor)), np.uint8), tensor)
        return _from_file(tensor, entries, folder, mapped)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, OverflowError, OSError, zlib.error, binascii.Error) as error:
        raise GraphError(f"the data of tensor {name!r} cannot be read ({error}); the model is damaged") from error


class _Normal:
    """Random numbers as a recipe describes them; nothing of the description is read when they are drawn."""

    def __init__(self, tensor: onnx.TensorProto, entries: Mapping[str, str]) -> None:
        self.values: Array = np.empty(tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type))
        self._seeded = np.random.PCG64(int(entries["offset"]))
        self._numbers = tuple(np.float32(entries[name]) for name in ("std", "mean", "min", "max"))

    def array(self) -> Array:
        flat = self.values.reshape(-1)
        generator = np.random.Generator(copy(self._seeded))
        # all at once where that takes no memory: a thread waits at each step for those that run Python
        step = max(1, flat.size) if flat.dtype == np.float32 else _PIECE
        for at in range(0, flat.size, step):
            self._draw(generator, flat[at : at + step])
        return self.values

    def first(self) -> Array:
        """The first few of the numbers."""
        some_values = np.empty(min(_FIRST, self.values.size), self.values.dtype)
        self._draw(np.random.Generator(copy(self._seeded)), some_values)
        return some_values

    def _draw(self, generator: np.random.Generator, place: Array) -> None:
        std, mean, least, most = self._numbers
        piece = place if place.dtype == np.float32 else np.empty(place.size, np.float32)
        generator.standard_normal(out=piece, dtype=np.float32)
        piece *= std
        piece += mean
        place[...] = np.clip(piece, least, most, out=piece)


def _decompressed(text: str, size: int) -> bytes:
    data = zlib.decompressobj().decompress(base64.b64decode(text), size + 1)  # a few bytes may describe gigabytes
    if len(data) != size:
        raise ValueError("its compressed data are not of the size of its shape")
    return data


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """The bytes that ONNX stores for a tensor of numbers; small integers and floats lie close together."""
    count: int = math.prod(tensor.dims)
    bits = PACKED_BITS.get(int(tensor.data_type)) or 8 * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    return -(-count * bits // 8)


def shaped(data: Array, tensor: onnx.TensorProto) -> Array:
    """The array of a tensor of which these are the stored bytes."""
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return data.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(tuple(tensor.dims))


def _from_file(tensor: onnx.TensorProto, entries: Mapping[str, str], folder: Path | None, mapped: bool) -> Array:
    if folder is None:
        raise FileNotFoundError(entries["location"])
    path = (folder / entries["location"]).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"its data file {entries['location']!r} lies outside the folder of the model")
    wanted = stored_bytes(tensor)
    length, offset = int(entries.get("length", wanted)), int(entries.get("offset", 0))
    if length != wanted or offset < 0:
        raise ValueError(f"it is said to be {length} bytes from {offset}, its shape takes {wanted}")
    if path.stat().st_size < offset + length:
        raise ValueError(f"{path.name} ends before its data do")
    if mapped and length and tensor.data_type not in PACKED_BITS:
        return shaped(np.memmap(path, np.uint8, "r", offset, (length,)).view(np.ndarray), tensor)
    data = np.fromfile(path, np.uint8, length, offset=offset)
    if tensor.data_type in PACKED_BITS:
        stored = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data.tobytes())
        return numpy_helper.to_array(stored)
    return shaped(data, tensor)


class Values:
    """The known values of a model by tensor name; big described weights are drawn in the background.

    What follows from known values may wait until its array is asked for (`Later`).
    """

    def __init__(self, folder: Path | None, background: Ahead) -> None:
        self.types: dict[str, TensorType] = {}
        self._folder = folder
        self._background = background
        self._arrays = Tensors[str]()
        self._later: dict[str, Later] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._arrays or name in self._later

    def __getitem__(self, name: str) -> Array:
        if name in self._later:
            self._arrays[name] = self._later.pop(name).array()
        return self._arrays[name]

    def __setitem__(self, name: str, value: Array | Later) -> None:
        if isinstance(value, Later):
            self._later[name] = value
            self.types[name] = value.type
        else:
            self._arrays[name] = value
            self.types[name] = array_type(value)

    def operand(self, name: str) -> Array | Later:
        """A known tensor as it is, for who does not need its elements yet."""
        return self._later[name] if name in self._later else self._arrays[name]

    def put(self, name: str, array: Array, type_: TensorType) -> None:
        """Take in a known tensor of open extents, whose type its array does not tell."""
        self._arrays[name] = array
        self.types[name] = type_

    def put_extent(self, name: str, extent: int) -> None:
        """Take in an extent, which may be open, as a scalar (int64)."""
        array = np.asarray(extent, np.int64) if not is_symbolic(extent) else np.empty((), object)
        if is_symbolic(extent):
            array[()] = extent
        self.put(name, array, TensorType("int64", ()))

    def few(self, most: int) -> list[str]:
        """The tensors of at most so many numbers, none of them an open extent."""
        return [
            name
            for name in self.types
            if name in self
            and self.types[name].dtype != "string"
            and self.types[name].elements <= most
            and not self.is_open(name)
        ]

    def of_extents(self) -> list[str]:
        """The known tensors that have open extents among their elements."""
        return [name for name in self._arrays if self.is_open(name)]

    def is_open(self, name: str) -> bool:
        """Whether elements of a known tensor are open extents."""
        if name not in self._arrays or self._arrays.is_described(name):
            return False
        return self.types[name].dtype != "string" and self._arrays[name].dtype == object

    def table(self, names: Iterable[str]) -> Tensors[str]:
        """These tensors, of which none waits any longer; others are drawn no more, and none is waited for."""
        names = list(names)
        for name in names:
            if name in self._later:
                self[name]
        made = some(self._arrays, names)
        self._background.only(made.described())
        return made

    def add(self, name: str, tensor: onnx.TensorProto) -> None:
        """Take in a tensor of the model."""
        drawn = is_external(tensor) and location(tensor).get("location") == "seeded-normal"
        if drawn and math.prod(tensor.dims) >= _BACKGROUND_FROM:
            self.types[name] = tensor_type(tensor)
            with _readable(name):
                drawn_later = _Normal(tensor, location(tensor))
            self._arrays.describe(name, self._background.add(drawn_later, stored_bytes(tensor)))
        else:
            self[name] = tensor_value(name, tensor, self._folder)
