"""Numbers that a rule computes for a constant of its right side."""

from __future__ import annotations

import math

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.builtins import Unsupported, describe
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.tensor.primitives import storage_dtype


def computed_number(expr: ast.Expression, scope: Scope, dtype: str) -> int | float:
    """The value of an expression as an element of a dtype.

    Raises:
        DefinitionError: the expression cannot be computed.
        Unsupported: it is no number, or none that the dtype has.
    """
    value = evaluate(expr, scope)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unsupported(f"a constant of the right side is {describe(value)}, not a number")
    if dtype in FLOATS:
        return value
    limits = np.iinfo(storage_dtype(dtype)) if np.dtype(storage_dtype(dtype)).kind in "iu" else None
    if not math.isfinite(value) or value != int(value) or limits is None or not limits.min <= value <= limits.max:
        raise Unsupported(f"a constant of the right side is {value}, which is no {dtype}")
    return int(value)
