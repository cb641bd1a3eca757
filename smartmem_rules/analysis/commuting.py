"""Whether the order of two operands matters to a definition that is said to be commutative."""

from __future__ import annotations

import numpy as np

from smartmem_rules.analysis.tries import Probe, tried
from smartmem_rules.language import syntax as s
from smartmem_rules.tensor import primitives
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.instantiate import Definitions, instantiate_overload
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_instance
from smartmem_rules.tensor.types import TensorType

_PROBES = 6
_MOST_ELEMENTS = 4096
_SMALL = 3
"""Elements are whole numbers up to this, so that sums of them are exact in any order."""


def order_matters(base: Definitions, operator: s.Operator) -> str | None:
    """Operands that give another result in the other order, as a text; None where none were found."""
    for number, probe in enumerate(tried(base, operator, _PROBES).probes):
        first = probe.operands[:2]
        if len(probe.operands) != 2 or any(one is None for one in first) or len(probe.instance.outputs) != 1:
            continue
        shown = ", ".join(map(str, first))
        differ = _differ(base, operator, probe, number)
        if differ:
            return f"({shown})"
    return None


def _differ(base: Definitions, operator: s.Operator, probe: Probe, number: int) -> bool:
    left, right = probe.operands
    if left is None or right is None or left.elements + right.elements > _MOST_ELEMENTS:
        return False
    source = np.random.default_rng(number)
    a, b = _elements(left, source), _elements(right, source)
    try:
        exchanged = instantiate_overload(base, operator, [right, left], probe.attributes)
    except (Unsupported, DefinitionError, ArithmeticError, LookupError, TypeError, ValueError):
        return True
    try:
        (one,), (other,) = evaluate_instance(probe.instance, [a, b]), evaluate_instance(exchanged, [b, a])
    except InterpretError:
        return False
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    if one.dtype.kind not in "fiub":
        return False
    return not np.allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-3, equal_nan=True)


def _elements(type_: TensorType, source: np.random.Generator) -> np.ndarray:
    dtype = primitives.storage_dtype(type_.dtype)
    low = 0 if dtype.kind in "ub" else -_SMALL
    return source.integers(low, 2 if dtype.kind == "b" else _SMALL + 1, type_.shape).astype(dtype)
