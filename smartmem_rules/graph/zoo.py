"""Stripped models with their weights filled in, for other systems to run."""

from __future__ import annotations

from pathlib import Path

import onnx

from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.weights import RECIPES, graph_tensors, is_external, location, tensor_value

_ONE_FILE_LIMIT = 1_800_000_000


def materialized_model(path: str | Path) -> onnx.ModelProto:
    """The model of a file with the data of every described tensor stored in it.

    Raises GraphError where the file is no model or its data are damaged.
    """
    model, folder = load_model(path)
    for name, tensor in graph_tensors(model.graph):
        if is_external(tensor) and location(tensor).get("location") in RECIPES:
            tensor.raw_data = tensor_value(name, tensor, folder).tobytes()
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.DEFAULT
    return model


def save_materialized(path: str | Path, target: str | Path) -> None:
    """Write the filled-in model; above protobuf's limit the weights go to `TARGET.data` beside it."""
    model = materialized_model(path)
    size = sum(len(tensor.raw_data) for _, tensor in graph_tensors(model.graph))
    if size < _ONE_FILE_LIMIT:
        onnx.save(model, str(target))
    else:
        onnx.save(model, str(target), save_as_external_data=True, location=f"{Path(target).name}.data")
