"""Weights that models describe, drawn once into a data file: ONNX Runtime takes models whose weights are there.

The model and what is made of it describe the same weights, so both read the same file, and nothing of it is held.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
import onnx

from smartmem_rules.graph.weights import RECIPES, graph_tensors, is_external, location, stored_bytes, tensor_value
from smartmem_rules.simplification.encoding import copy_range
from smartmem_rules.simplification.options import SimplifyError

_NAME = "drawn.data"
_ALIGNMENT = 4096
_INSIDE = 1 << 16
"""Bytes of the largest weight that is put into the model."""

Key = tuple[object, ...]


class Drawn:
    """A data file of the weights that models describe."""

    def __init__(self, folder: Path) -> None:
        """Args:
        folder: where the file is written as soon as there is something to draw.
        """
        self.folder = folder
        self._places: dict[Key, int] = {}

    def complete(self, model: onnx.ModelProto, folder: Path) -> Path:
        """Give a model its described weights, and say in which folder its data files are from then on.

        Data that lie in other files are copied beside those that are drawn: ONNX Runtime looks into one folder.

        Args:
            folder: where the model's data files are.

        Raises:
            GraphError: a weight cannot be drawn as it is described.
            SimplifyError: the file cannot be written, or one of the model's data files ends too early.
        """
        tensors = list(graph_tensors(model.graph))
        if not any(is_described(tensor) for _, tensor in tensors):
            return folder
        initializers = len(model.graph.initializer)
        path = self.folder / _NAME
        try:
            with open(path, "ab") as stream:
                for place, (name, tensor) in enumerate(tensors):
                    if not is_external(tensor):
                        continue
                    if is_described(tensor) and (place >= initializers or stored_bytes(tensor) <= _INSIDE):
                        tensor.raw_data = tensor_value(name, tensor, folder).tobytes()
                        tensor.ClearField("external_data")
                        tensor.ClearField("data_location")
                    else:
                        self._put(name, tensor, folder, stream)
        except OSError as error:
            raise SimplifyError(f"{path}: it cannot be written ({error.strerror or error})") from error
        return self.folder

    def _put(self, name: str, tensor: onnx.TensorProto, folder: Path, stream: IO[bytes]) -> None:
        """Let a tensor refer to the data file, which gets its data unless they are there."""
        entries = location(tensor)
        origin = () if is_described(tensor) else (folder,)
        key = (*origin, tensor.data_type, *tensor.dims, *sorted(entries.items()))
        if key not in self._places:
            stream.write(bytes(-stream.tell() % _ALIGNMENT))
            begin = stream.tell()
            if is_described(tensor):
                stream.write(tensor_value(name, tensor, folder).reshape(-1).view(np.uint8).data)
            else:
                copy_range(tensor, folder, stream)
            self._places[key] = begin
        del tensor.external_data[:]
        for entry, value in (("location", _NAME), ("offset", self._places[key]), ("length", stored_bytes(tensor))):
            tensor.external_data.add(key=entry, value=str(value))


def is_described(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor says how its elements are made, in place of them."""
    return is_external(tensor) and location(tensor).get("location") in RECIPES
