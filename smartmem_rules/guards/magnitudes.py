"""How large and how small the elements of constants are, and whether a reassociation may compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Apply, Equation, walk
from smartmem_rules.tensor.primitives import Array, compute_dtype

LARGEST = {"float32": 2.0**64, "bfloat16": 2.0**64, "float64": 2.0**512, "float16": 65504.0}
"""By float type the greatest element of a constant that takes part in a reassociation.

Its product with an element as large is finite. Of halves all finite ones are, since products of halves are computed in
single precision.
"""
_SMALLEST_NORMAL = {"float32": 2.0**-126, "bfloat16": 2.0**-126, "float64": 2.0**-1022, "float16": 2.0**-14}
_ADDITIVE = frozenset({"add", "sub", "neg", "abs", "min", "max"})
_PIECE = 1 << 18
"""Elements that are looked at together, so that what is computed of them stays in a core's cache."""


@dataclass(frozen=True, kw_only=True)
class Magnitudes:
    """The absolute values of the elements of a constant.

    Attributes:
        largest: 0 where there is no element, infinite where one is NaN or infinite.
        least: of the elements other than 0; infinite where there are none.
        has_zeros: whether an element is 0.
    """

    largest: float
    least: float
    has_zeros: bool


def asks_for_moderate(relaxes: Collection[str]) -> bool:
    """Whether constants of a rule have to be moderate, by the words of its `relaxes`.

    An author who relaxes NaN and infinities, too, wants them taken in: a mask of -inf, say.
    """
    return "reassociation" in relaxes and not {"nan", "infinities"} <= set(relaxes)


def magnitudes(array: Array) -> Magnitudes:
    """The magnitudes of an array of floats, which is read once and in pieces."""
    found = list(_of_pieces(array.ravel(order="K")))
    return Magnitudes(
        largest=max((one.largest for one in found), default=0.0),
        least=min((one.least for one in found), default=math.inf),
        has_zeros=any(one.has_zeros for one in found),
    )


def _of_pieces(flat: Array) -> Iterator[Magnitudes]:
    for at in range(0, flat.size, _PIECE):
        sizes = np.abs(flat[at : at + _PIECE].astype(compute_dtype(flat.dtype.name), copy=False))
        largest, least = float(sizes.max()), float(sizes.min())
        if not math.isfinite(largest):  # the greatest of numbers and NaN is NaN
            largest, least = math.inf, 0.0
        has_zeros = least == 0
        if has_zeros:
            least = float(np.min(sizes, initial=np.inf, where=sizes > 0))
        yield Magnitudes(largest=largest, least=least, has_zeros=has_zeros)


def is_moderate(constant: Magnitudes, dtype: str) -> bool:
    """Whether no element is NaN, infinite, or so large that products with it overflow early."""
    return constant.largest <= LARGEST[dtype]


def keeps_number(value: float) -> bool:
    """Whether a float attribute, which ONNX holds in single precision, is moderate and did not underflow."""
    return value == 0 or _SMALLEST_NORMAL["float32"] <= abs(value) <= LARGEST["float32"]


def keeps_elements(
    equations: Sequence[Equation], made: Magnitudes, operands: Callable[[], Sequence[Magnitudes]], dtype: str
) -> bool:
    """Whether equations that gave a constant lost no element of it to overflow or underflow.

    Of halves, whose weights hold small numbers beside large ones in every model, only the greatest element counts: what
    the others lose is less than the rounding of that one.

    Args:
        made: what was computed.
        operands: gives the floats that it was computed from.
        dtype: the float type of the constant.
    """
    if moves(equations):
        return True
    if not is_moderate(made, dtype):
        return False
    smallest = _SMALLEST_NORMAL[dtype]
    if not made.has_zeros and made.least >= smallest:
        return True  # of an operand that is not finite there would be infinities, NaN or zeros
    if not all(is_moderate(one, dtype) for one in operands()):
        return False
    if not _multiplies(equations):
        return True  # sums underflow in no way
    if dtype == "float16":
        return made.largest >= smallest or any(one.largest == 0 for one in operands())
    return made.least >= smallest and _smallest_product(operands()) >= smallest


def moves(equations: Sequence[Equation]) -> bool:
    """Whether equations only move elements."""
    return all(one.view is not None for one in equations)


def _multiplies(equations: Sequence[Equation]) -> bool:
    nodes = (node for one in equations for node in walk(one.body))
    return any(isinstance(node, Apply) and node.function not in _ADDITIVE for node in nodes)


def _smallest_product(operands: Sequence[Magnitudes]) -> float:
    """A number that no product of elements other than 0, or of their reciprocals, lies below."""
    return math.prod(min(1.0, one.least, 1.0 / one.largest) for one in operands if one.largest > 0)
