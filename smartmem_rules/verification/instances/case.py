"""One instance of a rule: both of its sides at concrete types and attributes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.definitions.values import Scope
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.types import NARROW_FLOATS, NARROW_INTEGERS
from smartmem_rules.verification.semantics.terms import Term

NARROW_NUMBERS = (0.5, 1.0, 2.0, 4.0)
"""What every float of few bits can be."""

Choices = dict[str, Any]
"""What makes up an instance, by slot: `shape:x`, `name:a`, `given:PATH`, `dtype`, `uniform:x` and the like."""

EMPTY = "empty"
"""The slot that is true in instances with a tensor of no elements."""

DTYPES = ("float32", "float16", "float64", "int32", "int64", "uint8", "bool", "int8", "bfloat16")

OTHER_DTYPES = ("int16", "uint16", "uint32", "uint64")
"""Element types that are tried where a guard names them."""


class NoInstance(Exception):
    """A left side could not be built with some choices."""


@dataclass
class Case:
    """One instance of a rule: both sides at concrete types and attributes.

    Attributes:
        right: None where the engine turns the right side down (its type differs or no operator takes it).
        uniform: constants all of whose elements have one value.
        elements: constants of whose elements guards speak, with all of them.
        failing: the guards that do not hold.
    """

    left: Term
    right: Term | None
    scope: Scope
    choices: Choices
    constants: frozenset[str]
    uniform: dict[str, float]
    elements: dict[str, Array] = field(default_factory=dict)
    failing: list[ast.Expression] = field(default_factory=list)
    refusal: str | None = None
    slots: dict[str, set[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether a tensor of the left side has no elements."""
        return bool(self.choices.get(EMPTY))

    @property
    def satisfied(self) -> bool:
        """Whether all guards hold."""
        return not self.failing


def representable(number: float, dtype: str) -> bool:
    """Whether a number is a value of an element type."""
    if dtype in FLOATS:
        return True
    if dtype in NARROW_FLOATS:
        return number in NARROW_NUMBERS
    if number != number or abs(number) == float("inf") or number != int(number):
        return False
    if dtype == "bool":
        return 0 <= number <= 1
    least, greatest = limits_of(dtype)
    return least <= number <= greatest


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    bits = NARROW_INTEGERS.get(dtype) or 8 * np.dtype(dtype).itemsize
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
