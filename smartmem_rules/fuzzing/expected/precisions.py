"""How element types hold reals: their rounding, their least and their greatest number."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Precision:
    """How the reals of an element type are held.

    Attributes:
        unit: half the distance of 1 from the next number.
        least: the least normal number; below it devices may hold zero.
        most: the greatest number.
        held: numpy's element type where its numbers are so far apart that whole ones are near, None elsewhere.
    """

    unit: float
    least: float
    most: float
    held: type[np.floating[Any]] | None = None


PRECISIONS = {
    "bfloat16": Precision(2.0**-8, 1.2e-38, 3.38e38),
    "float16": Precision(2.0**-11, 6.2e-5, 65504.0, np.float16),
    "float32": Precision(2.0**-24, 1.2e-38, 3.4028234e38),
    "float64": Precision(2.0**-53, 2.3e-308, float("inf")),
}
