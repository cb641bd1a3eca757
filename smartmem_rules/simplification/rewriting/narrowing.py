"""The extents for which a model's operands fit each other, where a table ends before an open dimension does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import UnlikeShapesError, Unsupported
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import Dimension, Extent, Extreme, at, dimensions, is_symbolic
from smartmem_rules.tensor.instantiate import RefusedByAll

_OTHERS = 3
"""The extent of all other dimensions, where one is looked at."""
_BEYOND = 5
"""How far beyond the end a second extent is looked at."""


def greatest_extents(operator: str, types: Sequence[TensorType | None], base: RuleBase) -> Mapping[str, int]:
    """The greatest extents of dimensions for which the operands of a node fit each other.

    A table of positions that is cut to a sequence has min(sequence, 512) rows. It is added to what has as many rows as
    the sequence is long, so that a sequence of more than 512 is an error, whatever the rest of the model does.

    Args:
        operator: of which no definition took the operands of these types.
    """
    instances = Instances(base)
    found: dict[str, int] = {}
    for dimension, most in _ends(types):
        beyond = (most + 1, most + _BEYOND)
        if _fits(operator, types, instances, dimension, most) and not any(
            _fits(operator, types, instances, dimension, extent) for extent in beyond
        ):
            found[dimension.name] = min(most, found.get(dimension.name, most))
    return found


def _ends(types: Sequence[TensorType | None]) -> Iterator[tuple[Dimension, int]]:
    """Dimensions beside the least of themselves and a number, with that number."""
    shapes = [type_.shape for type_ in types if type_ is not None]
    for one in shapes:
        for other in shapes:
            for extent, end in zip(reversed(one), reversed(other), strict=False):
                match _factor(extent), _factor(end):
                    case Dimension() as dimension, Extreme(kind="min", left=left, right=right):
                        numbers = [side for side in (left, right) if not is_symbolic(side)]
                        if extent in (left, right) and numbers and numbers[0] > 1:
                            yield dimension, numbers[0]


def _factor(extent: int) -> object:
    """The only factor of an extent."""
    if type(extent) is not Extent or len(extent.terms) != 1:
        return None
    ((factors, coefficient),) = extent.terms
    return factors[0] if len(factors) == 1 and coefficient == 1 else None


def _fits(
    operator: str, types: Sequence[TensorType | None], instances: Instances, dimension: Dimension, extent: int
) -> bool:
    """Whether the operands fit at an extent; also where something else is wrong with them than their shapes."""
    names = {one.name for type_ in types if type_ is not None for n in type_.shape for one in dimensions(n)}
    values = {**dict.fromkeys(names, _OTHERS), dimension.name: extent}
    numbers = [None if t is None else TensorType(t.dtype, tuple(int(at(n, values)) for n in t.shape)) for t in types]
    try:
        instances.get(operator, numbers, {}, 1)
    except RefusedByAll as refusal:
        return not any(isinstance(reason, UnlikeShapesError) for reason in refusal.reasons)
    except Unsupported:
        return True
    return True
