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
STORED = ("float32", "float16", "bfloat16")
"""Element types of a model that an implementation may store in another one of them."""


def held_in(own: str, storage: str) -> Precision:
    """How a tensor is held whose elements are of one type in the model, and of another one where they are stored.

    Both types round it, and both bound it: a half that is stored as a bfloat16 has the digits of a bfloat16, and no
    number beyond the halves.
    """
    if own not in STORED:
        return PRECISIONS[own]
    first, second = PRECISIONS[own], PRECISIONS[storage]
    coarser = max(first, second, key=lambda one: one.unit)
    return Precision(coarser.unit, max(first.least, second.least), min(first.most, second.most), coarser.held)


def is_restored(own: str, storage: str) -> bool:
    """Whether storing an element of the model may round it."""
    return own in STORED and storage not in (own, "float32")
