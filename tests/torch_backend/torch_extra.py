"""PyTorch, which is an extra of the package: without it these tests cannot run."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra of the package: pip install smartmem-rules[torch]")
pytest.importorskip("onnxscript", reason="onnxscript is an extra of the package: pip install smartmem-rules[torch]")

__all__ = ["torch"]
