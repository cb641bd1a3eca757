"""SmartMem as a declarative rule engine: ONNX models to few texture-memory OpenCL kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_rules.api import OptimizedPlan, load, optimize, verify

__version__ = "0.1.0"
__all__ = ["OptimizedPlan", "__version__", "load", "optimize", "verify"]


def __getattr__(name: str) -> Any:
    # imported when first used: the engine's libraries take longer to import than small programs run
    if name in ("OptimizedPlan", "load", "optimize", "verify"):
        from smartmem_rules import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
