"""The e-graph of a model: every form of it that the rules allow."""

from __future__ import annotations

from smartmem_rules.egraph.index_compile import IndexRuleError
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.egraph.saturation import Bounds, EngineError, saturate

__all__ = ["Bounds", "EngineError", "IndexRuleError", "Saturation", "saturate"]
