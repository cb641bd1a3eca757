"""Exports the networks to ONNX without their weights: `python bench/zoo/export.py [NAME ...] -o examples/models`.

The weights are drawn anew from each tensor's name and statistics when a model is read (`smartmem_rules.graph.weights`),
the same on every machine.  Needs the extra `zoo`.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from zoo import swin
from zoo.biformer import BiFormer
from zoo.crossformer import CrossFormer
from zoo.cswin import CSWin
from zoo.smt import SMT
from zoo.yolo import YOLO

OPSET = 17
SMALL = 2048
"""Tensors of fewer elements keep their values."""
FEW = 64
"""A tensor of fewer distinct values is a table or a mask: it keeps its values, compressed."""
MODELS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "autoformer_s3": (lambda: swin.Swin(swin.AUTOFORMER_S3_TINY), 224),
    "biformer_tiny": (BiFormer, 224),
    "crossformer_s": (CrossFormer, 224),
    "cswin_tiny": (CSWin, 224),
    "flatten_swin_tiny": (lambda: swin.Swin(swin.FLATTEN_SWIN_TINY), 224),
    "smt_tiny": (SMT, 224),
    "yolov8n": (YOLO, 640),
}


def main() -> int:
    """Export the models that are named, or all."""
    makers = {name: partial(exported, make, size) for name, (make, size) in MODELS.items()}
    return export_named(__doc__, makers, "examples/models")


def export_named(purpose: str | None, makers: Mapping[str, Callable[[], onnx.ModelProto]], folder: str) -> int:
    """The command line of a script that exports networks without their weights.

    Args:
        purpose: what the script is for.
        makers: give the models with their weights, by name.
        folder: where the files go, if the command does not say.
    """
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(makers)}; all by default")
    parser.add_argument("-o", "--output", type=Path, default=Path(folder))
    arguments = parser.parse_args()
    for name in arguments.models or makers:
        path = arguments.output / f"{name}.onnx"
        onnx.save(stripped(makers[name]()), str(path))
        print(f"{path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
    return 0


def exported(make: Callable[[], nn.Module], size: int) -> onnx.ModelProto:
    """The ONNX graph of a network at random weights, its normalizations fitted to random images."""
    torch.manual_seed(0)
    model = make()
    image = torch.randn(1, 3, size, size)
    with torch.no_grad():
        model.train()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = None
        model(torch.randn(2, 3, size, size))
        model.eval()
        file = io.BytesIO()
        torch.onnx.export(
            model, (image,), file, opset_version=OPSET, input_names=["image"], output_names=["output"], dynamo=False
        )
    return onnx.load_from_string(file.getvalue())


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with recipes in the place of its large tensors."""
    for tensor in model.graph.initializer:
        strip(tensor.name, tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                strip(node.output[0], attribute.t)
    return model


def strip(name: str, tensor: onnx.TensorProto) -> None:
    """Replace the data of a large tensor by what re-creates it."""
    array = numpy_helper.to_array(tensor)
    if array.size < SMALL:
        return
    entries = {"length": str(array.nbytes)}
    if array.dtype.kind != "f" or np.unique(array).size < FEW:
        entries |= {"location": "zlib-base64", "data": base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()}
    else:
        entries |= {"location": "seeded-normal", "offset": str(zlib.crc32(name.encode()))}
        statistics = {"mean": array.mean(), "std": array.std(), "min": array.min(), "max": array.max()}
        entries |= {key: f"{float(value):.7g}" for key, value in statistics.items()}
    tensor.ClearField("raw_data")
    for packed in ("float_data", "int64_data", "int32_data", "double_data"):
        tensor.ClearField(packed)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


if __name__ == "__main__":
    sys.exit(main())
