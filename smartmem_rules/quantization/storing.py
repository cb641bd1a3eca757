"""Models as files, with a data file beside them where they exceed what one file of ONNX holds."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from smartmem_rules.quantization.options import QuantizeError
from smartmem_rules.whole_files import write_whole

ONE_FILE = 1_800_000_000
"""Bytes of the largest model that lies in one file; protobuf takes 2^31."""


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
        onnx.save_model(model, place / target.name, save_as_external_data=True, location=data)
        (place / data).replace(target.with_name(data))
        (place / target.name).replace(target)
