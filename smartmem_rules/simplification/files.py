"""Models as files with their data files: streamed where they are large, written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import onnx

from smartmem_rules.graph.weights import RECIPES, graph_tensors, is_external, location
from smartmem_rules.simplification.encoding import copy_range, encoded_bytes, is_inside, write_encoded
from smartmem_rules.simplification.options import SimplifyError

ONE_FILE = 1_800_000_000
"""Bytes of the largest model that lies in one file; protobuf takes 2^31."""
_INSIDE = 1024
"""Bytes of the largest tensor that lies in the model's file where others lie in a data file."""
_ALIGNMENT = 4096


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A folder on the filesystem of a file that will be written; it is gone afterwards.

    Raises:
        SimplifyError: the folder of the file does not exist or cannot be written.
    """
    try:
        made = TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:64]}.", suffix=".part")
    except OSError as error:
        raise SimplifyError(f"{target}: it cannot be written ({error.strerror or error})") from error
    with made as folder:
        yield Path(folder)


def write_model(model: onnx.ModelProto, source: Path | None, folder: Path, name: str) -> Path:
    """Write a model into a folder, its large tensors into `NAME.data` if any lies in a data file or they are many.

    Args:
        source: the folder of the files to which the model's tensors refer.

    Raises:
        OSError: something cannot be written.
        SimplifyError: a data file is too short.
    """
    path = folder / name
    tensors = [tensor for _, tensor in graph_tensors(model.graph)]
    if any(_lies_outside(tensor) for tensor in tensors) or encoded_bytes(model) > ONE_FILE:
        written = onnx.ModelProto()
        written.CopyFrom(model)
        with open(folder / f"{name}.data", "wb") as stream:
            for _, tensor in graph_tensors(written.graph):
                _write_tensor(tensor, source, stream, f"{name}.data")
        model = written
    with open(path, "wb") as stream:
        write_encoded(model, stream, source)
    return path


def _lies_outside(tensor: onnx.TensorProto) -> bool:
    """Whether the data of a tensor lie in a data file, which is none of the model's own."""
    return is_external(tensor) and not is_inside(tensor) and location(tensor).get("location") not in RECIPES


def _write_tensor(tensor: onnx.TensorProto, source: Path | None, stream: IO[bytes], name: str) -> None:
    """Move the data of a tensor to the end of a data file."""
    parsed = not is_external(tensor)
    if (parsed and len(tensor.raw_data) <= _INSIDE) or location(tensor).get("location") in RECIPES:
        return
    stream.write(bytes(-stream.tell() % _ALIGNMENT))
    begin = stream.tell()
    if parsed:
        stream.write(tensor.raw_data)
        tensor.ClearField("raw_data")
    else:
        copy_range(tensor, source, stream)
    del tensor.external_data[:]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", name), ("offset", str(begin)), ("length", str(stream.tell() - begin))):
        tensor.external_data.add(key=key, value=value)


def put(folder: Path, name: str, target: Path) -> None:
    """Give a written model and its data file their final places, the data first."""
    data = folder / f"{name}.data"
    if data.exists():
        data.replace(target.with_name(f"{target.name}.data"))
    (folder / name).replace(target)


def copy_unchanged(path: Path, model: onnx.ModelProto, folder: Path, target: Path) -> None:
    """Write a model's file as it is; its data files go beside the new file under their own names.

    Raises:
        SimplifyError: another file of such a name is there.
    """
    if path.resolve() == target.resolve():
        return
    for name in dict.fromkeys(location(t)["location"] for _, t in graph_tensors(model.graph) if _lies_outside(t)):
        place = target.parent / name
        if place.resolve() == (path.parent / name).resolve():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        copy = folder / Path(name).name
        shutil.copyfile(path.parent / name, copy)
        copy.replace(place)
    shutil.copyfile(path, folder / "unchanged")
    (folder / "unchanged").replace(target)
