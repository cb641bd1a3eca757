"""SmartMem as a declarative rule engine: ONNX models to few texture-memory OpenCL kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_rules.api import OptimizedPlan, generate, load, optimize, quantize, simplify, verify
    from smartmem_rules.decoding.choosing import Sampling
    from smartmem_rules.decoding.generator import Generator
    from smartmem_rules.specialized import SpecializedModel

from smartmem_rules.errors import SmartmemError

__version__ = "0.1.0"
__all__ = [
    "Generator",
    "OptimizedPlan",
    "Sampling",
    "SmartmemError",
    "SpecializedModel",
    "__version__",
    "generate",
    "load",
    "optimize",
    "quantize",
    "simplify",
    "verify",
]


def __getattr__(name: str) -> Any:
    # imported when first used: the engine's libraries take longer to import than small programs run
    if name in ("OptimizedPlan", "generate", "load", "optimize", "quantize", "simplify", "verify"):
        from smartmem_rules import api  # start-up time

        return getattr(api, name)
    if name == "Generator":
        from smartmem_rules.decoding.generator import Generator  # start-up time

        return Generator
    if name == "Sampling":
        from smartmem_rules.decoding.choosing import Sampling  # start-up time

        return Sampling
    if name == "SpecializedModel":
        from smartmem_rules.specialized import SpecializedModel  # start-up time

        return SpecializedModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
