"""The models that come with the project, and stripped models with their weights filled in, for other systems to run."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TypedDict

import onnx

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of, load_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.graph.weights import RECIPES, graph_tensors, is_external, location, tensor_value
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.resources import models_path

_ONE_FILE_LIMIT = 1_800_000_000
NETWORKS = {
    "autoformer_s3": "AutoFormer",
    "biformer_tiny": "BiFormer",
    "crossformer_s": "CrossFormer",
    "cswin_tiny": "CSwin",
    "efficientvit_b3": "EfficientViT",
    "flatten_swin_tiny": "FlattenFormer",
    "smt_tiny": "SMTFormer",
    "swin_tiny": "Swin",
    "vit_base": "ViT",
    "conformer": "Conformer",
    "sd_text_encoder": "SD-TextEncoder",
    "sd_unet": "SD-UNet",
    "sd_vae_decoder": "SD-VAEDecoder",
    "pythia_1b": "Pythia-1B",
    "convnext_tiny": "ConvNeXt",
    "regnetx_032": "RegNet",
    "resnext50": "ResNext",
    "yolov8n": "Yolo-V8",
}
"""What the paper calls those models that it measures."""


class ShippedModel(TypedDict):
    """A model that comes with the project; `network` is its name in SmartMem's tables."""

    name: str
    network: str | None
    operators: int
    parameters: int
    opset: int | None
    bytes: int


def shipped_models() -> dict[str, Path]:
    """The stripped models that come with the project, by name: the paper's first, in its order."""
    found = {path.stem: path for path in models_path().glob("*.onnx")}
    order = [*(name for name in NETWORKS if name in found), *sorted(set(found) - set(NETWORKS))]
    return {name: found[name] for name in order}


def shipped_model(name: str) -> Path:
    """The file of a model; raises GraphError where there is none of the name."""
    models = shipped_models()
    if name not in models:
        near = did_you_mean(name, models)
        raise GraphError(f"there is no model {name!r}; {near or 'there are ' + ', '.join(models)}")
    return models[name]


def describe_model(path: Path) -> ShippedModel:
    """Name, network of the paper (None for others), operators, parameters, opset and size of a model's file."""
    model, _ = load_model(path)
    versions = {domain_of(entry.domain): entry.version for entry in model.opset_import}
    return {
        "name": path.stem,
        "network": NETWORKS.get(path.stem),
        "operators": sum(node.op_type != "Constant" for node in model.graph.node),
        "parameters": sum(math.prod(t.dims) for t in model.graph.initializer),
        "opset": versions.get(DEFAULT_DOMAIN),
        "bytes": path.stat().st_size,
    }


def write_model(path: Path, folder: Path, stripped: bool = False) -> Path:
    """Write a model with its weights, or as it is shipped, into a folder; the path of the new file."""
    target = folder / path.name
    if stripped:
        shutil.copyfile(path, target)
    else:
        save_materialized(path, target)
    return target


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
