"""Whether something is a PyTorch model, asked without importing PyTorch."""

from __future__ import annotations

import sys
from typing import Any


def is_program(source: Any) -> bool:
    """Whether this is a `torch.nn.Module` or a `torch.export.ExportedProgram`."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module | torch.export.ExportedProgram)


def holds_tensors(values: Any) -> bool:
    """Whether a tuple or list has a tensor of PyTorch in it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, tuple | list) and any(isinstance(v, torch.Tensor) for v in values)
