"""PyTorch's models are told from others without PyTorch."""

from __future__ import annotations

import sys

from smartmem_rules.torch_backend.detection import holds_tensors, is_program


def test_nothing_is_imported() -> None:
    before = "torch" in sys.modules
    assert not is_program("model.onnx")
    assert not holds_tensors(("rules.smr",))
    assert ("torch" in sys.modules) == before
