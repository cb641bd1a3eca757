"""Models in another version of ONNX's operators, by ONNX's own converter."""

from __future__ import annotations

import onnx
from onnx import version_converter

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, opsets
from smartmem_rules.simplification.options import SimplifyError


def in_opset(model: onnx.ModelProto, opset: int | None) -> onnx.ModelProto:
    """The model in a version of the standard operators; the model itself where it is in that version already.

    Raises:
        SimplifyError: ONNX has no such version, or its converter does not take the model there.
    """
    if opset is None or opsets(model).get(DEFAULT_DOMAIN) == opset:
        return model
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise SimplifyError(f"there is no opset {opset}; the newest that this version of onnx knows is {newest}")
    try:
        return version_converter.convert_version(model, opset)
    except Exception as error:  # its converter's own classes
        reason = " ".join(str(error).split())
        raise SimplifyError(f"ONNX's converter does not bring the model to opset {opset}: {reason}") from error
