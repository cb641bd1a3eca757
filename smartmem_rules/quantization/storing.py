"""Models as files, with a data file beside them where they exceed what one file of ONNX holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from smartmem_rules.graph.weights import graph_tensors
from smartmem_rules.quantization.options import QuantizeError
from smartmem_rules.whole_files import write_whole

ONE_FILE = 1_800_000_000
"""Bytes of the largest model that lies in one file; protobuf takes 2^31."""
INSIDE = 1024
"""Bytes of the largest tensor that stays in the model's file where others lie in a data file."""
ALIGNMENT = 4096


def save(model: onnx.ModelProto, target: Path) -> Path:
    """Write a model, whole or not at all.

    Raises:
        QuantizeError: it cannot be written.
    """
    try:
        if sum(len(tensor.raw_data) for tensor in model.graph.initializer) < ONE_FILE:
            write_whole(target, model.SerializeToString())
        else:
            _save_with_data(model, target)
    except OSError as error:
        raise QuantizeError(f"{target}: it cannot be written ({error.strerror or error})") from error
    return target


def _save_with_data(model: onnx.ModelProto, target: Path) -> None:
    data = f"{target.name}.data"
    with TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:64]}.", suffix=".part") as folder:
        place = Path(folder)
        with _data_in(model, place / data):
            (place / target.name).write_bytes(model.SerializeToString())
        (place / data).replace(target.with_name(data))
        (place / target.name).replace(target)


@contextmanager
def _data_in(model: onnx.ModelProto, path: Path) -> Iterator[None]:
    """While this lasts the model's large tensors are in a file, to which it refers; then they are in it again."""
    moved: list[tuple[onnx.TensorProto, bytes]] = []
    try:
        with open(path, "wb") as stream:
            for _, tensor in graph_tensors(model.graph):
                if len(tensor.raw_data) > INSIDE:
                    stream.write(bytes(-stream.tell() % ALIGNMENT))
                    moved.append((tensor, tensor.raw_data))
                    _refer(tensor, path.name, stream.tell())
                    stream.write(moved[-1][1])
        yield
    finally:
        for tensor, values in moved:
            del tensor.external_data[:]
            tensor.ClearField("data_location")
            tensor.raw_data = values


def _refer(tensor: onnx.TensorProto, name: str, begin: int) -> None:
    """Let a tensor refer to its data in a file, in the place of having them."""
    length = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", name), ("offset", str(begin)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
