"""Nodes of known operands, computed at import."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.interpret import evaluate_instance
from smartmem_rules.tensor.primitives import Array

_FEW = 64
"""Elements of operands that are compared: shapes have as few, and comparing them is quicker than computing."""
_Key = tuple[object, ...]


class Folding:
    """Computes instances for arrays; the same instance for equal few elements once.

    Exporters write the computation of a shape anew for each block of a network.
    """

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[Instance, list[Array]]] = {}

    def outputs(self, instance: Instance, operands: Sequence[Array | None]) -> list[Array]:
        """What `evaluate_instance` gives; the arrays may have been given before and are not to be written.

        Raises:
            InterpretError: an index leaves its range.
        """
        key = _key(instance, operands)
        if key is None:
            return evaluate_instance(instance, operands)
        if key not in self._known:
            # with the instance, or another one could get its id
            self._known[key] = instance, evaluate_instance(instance, operands)
        return self._known[key][1]


def _key(instance: Instance, operands: Sequence[Array | None]) -> _Key | None:
    """What the results follow from; None where that is too much, or objects."""
    present = [operand for operand in operands if operand is not None]
    if sum(operand.size for operand in present) > _FEW or any(operand.dtype.hasobject for operand in present):
        return None
    return id(instance), *(o if o is None else (o.dtype, o.shape, o.tobytes()) for o in operands)
