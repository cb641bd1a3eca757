"""Drawings that show what plain ones miss: attributes beside their defaults, and operands that fit each other.

A `Concat` of two operands whose shapes were drawn apart exists at axis 0 of vectors, hardly ever at axis 1 of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from smartmem_rules.analysis.probes import EXTENTS, Drawing, Operand, orders_of
from smartmem_rules.language import syntax as s
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.types import TensorType

_OFTEN = 0.7


def alike_drawn(tensors: Mapping[str, Operand], random: Random) -> TensorType | None:
    """The type of an operand that was drawn before, often with another extent of one axis; None for a fresh one."""
    known = [one for one in tensors.values() if one is not None]
    if not known or random.random() > _OFTEN:
        return None
    chosen = random.choice(known)
    if not chosen.shape or random.random() < 0.5:
        return chosen
    axis = random.randrange(len(chosen.shape))
    return TensorType(chosen.dtype, (*chosen.shape[:axis], random.choice(EXTENTS), *chosen.shape[axis + 1 :]))


def named_value(drawing: Drawing, name: str) -> Value:
    """A value for an attribute that a pattern names, whatever its default; None where it stays open."""
    kinds = {item.name: (item.constant, item.default) for item in drawing.operator.inputs if item.constant is not None}
    kinds |= {one.name: (one.kind, one.default) for one in drawing.operator.attributes}
    kind, default = kinds.get(name, (None, None))
    if kind not in ("int", "ints") or drawing.random.random() > _OFTEN:
        return None
    if isinstance(default, s.Number) and default.value in (0, 1):
        return drawing.random.choice((0, 1))
    return _order(drawing) if name in orders_of(drawing.operator) else drawing.value_of(name)


def _order(drawing: Drawing) -> tuple[int, ...]:
    """An order of axes, often one that is not its own inverse: others hide that the inverse is meant."""
    order = drawing.order()
    own_inverse = all(order[axis] == place for place, axis in enumerate(order))
    return (*order[1:], *order[:1]) if own_inverse and drawing.random.random() < _OFTEN else order
