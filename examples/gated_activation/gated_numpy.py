"""The gated activation by numpy, as checks compute it."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def gated_activation(x: Array, gate: Array, alpha: float) -> Array:
    """x * sigmoid(alpha * gate), written by the hyperbolic tangent."""
    half: Array = np.tanh(gate * alpha / 2)
    return x * (1 + half) / 2
