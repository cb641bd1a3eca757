"""What extents are products of: dimensions, quotients, and the least and greatest of two."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np

from smartmem_rules.records import dataclass

_PREFIX = "dim_"


@dataclass(frozen=True)
class Dimension:
    """An open dimension of a model; its values run from `low` to `high`, both included."""

    name: str
    low: int
    high: int

    @cached_property
    def parameter(self) -> str:
        """The name of the kernel argument."""
        return _PREFIX + re.sub(r"[^0-9A-Za-z_]", lambda match: f"_{ord(match[0]):x}_", self.name)

    def __str__(self) -> str:
        return f"{self.name} in {self.low}..{self.high}"


@dataclass(frozen=True)
class Quotient:
    """floor(value / divisor), where the polynomials do not divide.

    The divisor is never negative. Where it is 0, an axis is empty and nothing depends on the quotient; it counts as 1,
    so that nothing divides by zero.
    """

    value: int
    divisor: int

    def __str__(self) -> str:
        from smartmem_rules.tensor.ranges import smallest  # which computes with extents

        if smallest(self.value) >= 0:
            return f"({self.value} / {divisor_text(self.divisor)})"
        return f"smr_floordiv_i({self.value}, {divisor_text(self.divisor)})"

    def __repr__(self) -> str:
        return f"({self.value!r})//({self.divisor!r})"


@dataclass(frozen=True)
class Extreme:
    """The least (`min`) or the greatest (`max`) of two extents, of which neither always is it."""

    kind: str
    left: int
    right: int

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.left, self.right))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.kind}({self.left}, {self.right})"

    def __repr__(self) -> str:
        return f"{self.kind}({self.left!r}, {self.right!r})"

    def of(self, left: Any, right: Any) -> Any:
        """The least or the greatest of two values, numbers or arrays."""
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right) if self.kind == "min" else max(left, right)
        return np.minimum(left, right) if self.kind == "min" else np.maximum(left, right)


def divisor_text(divisor: int) -> str:
    """A divisor as OpenCL C; one that may be 0 counts as 1 there, because then nothing depends on the quotient."""
    from smartmem_rules.tensor.ranges import may_vanish  # which computes with extents

    return f"max({divisor}, 1)" if may_vanish(divisor) else str(divisor)
