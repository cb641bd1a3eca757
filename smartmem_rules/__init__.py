"""SmartMem as a declarative rule engine: ONNX models to few texture-memory OpenCL kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_rules.api import OptimizedPlan, load, optimize, quantize, simplify, verify
    from smartmem_rules.specialized import SpecializedModel

from smartmem_rules.errors import SmartmemError

__version__ = "0.1.0"
__all__ = [
    "OptimizedPlan",
    "SmartmemError",
    "SpecializedModel",
    "__version__",
    "load",
    "optimize",
    "quantize",
    "simplify",
    "verify",
]


def __getattr__(name: str) -> Any:
    # imported when first used: the engine's libraries take longer to import than small programs run
    if name in ("OptimizedPlan", "load", "optimize", "quantize", "simplify", "verify"):
        from smartmem_rules import api  # start-up time

        return getattr(api, name)
    if name == "SpecializedModel":
        from smartmem_rules.specialized import SpecializedModel  # start-up time

        return SpecializedModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
