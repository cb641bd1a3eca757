"""Nodes of known operands: computed at import, large results when somebody asks for them.

Until then only their bytes are counted, so a model that folds more than its limit is refused before memory is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.graph.described import Later
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_instance
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.types import TensorType

LATER_FROM = 1 << 20
"""Bytes of what an instance defines from which on its results wait until somebody asks for them."""
_FEW = 64
"""Elements of operands that are compared: shapes have as few, and comparing them is quicker than computing."""
_Key = tuple[object, ...]


class _Fold:
    """An instance whose operands are known, or wait as well; it is computed once."""

    def __init__(self, instance: Instance, operands: Sequence[Array | Later | None], where: str) -> None:
        self._instance = instance
        self._operands = operands
        self._where = where
        self._results: list[Array] | None = None

    def results(self) -> list[Array]:
        """The outputs. What they follow from is computed first, without recursion: chains may be long."""
        waiting = [self]
        while waiting:
            before = [one for one in waiting[-1]._reads() if one._results is None]
            if before:
                waiting += before
            else:
                waiting.pop()._compute()
        assert self._results is not None
        return self._results

    def _reads(self) -> list[_Fold]:
        return [operand.fold for operand in self._operands if isinstance(operand, _Result)]

    def _compute(self) -> None:
        if self._results is not None:
            return
        try:
            self._results = evaluate_instance(self._instance, _arrays(self._operands))
        except InterpretError as reason:
            raise GraphError(f"{self._where} cannot be computed: {reason}") from reason
        self._operands = ()


class _Result(Later):
    """A result of an instance that waits.

    Raises:
        GraphError: from `array`, where an index leaves its range, here or in what the array follows from.
    """

    def __init__(self, fold: _Fold, place: int, type_: TensorType) -> None:
        self.fold = fold
        self.type = type_
        self._place = place

    def array(self) -> Array:
        return self.fold.results()[self._place]


class Folding:
    """Computes instances for arrays; the same instance for equal few elements once.

    Exporters write the computation of a shape anew for each block of a network.
    """

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[Instance, Sequence[Array | Later]]] = {}

    def outputs(
        self, instance: Instance, operands: Sequence[Array | Later | None], size: int, where: str
    ) -> Sequence[Array | Later]:
        """What `evaluate_instance` gives; the arrays may have been given before and are not to be written.

        Args:
            size: bytes of all tensors that the instance defines.
            where: what the node is, for messages.

        Raises:
            InterpretError: an index leaves its range.
            GraphError: it does where an operand is computed that has waited until now.
        """
        key = _key(instance, operands)
        if key is None:
            return _outputs(instance, operands, size, where)
        if key not in self._known:
            # with the instance, or another one could get its id
            self._known[key] = instance, _outputs(instance, operands, size, where)
        return self._known[key][1]


def _outputs(
    instance: Instance, operands: Sequence[Array | Later | None], size: int, where: str
) -> Sequence[Array | Later]:
    waits = size >= LATER_FROM or any(isinstance(operand, Later) for operand in operands)
    if not waits or not _has_known_types(instance):
        return evaluate_instance(instance, _arrays(operands))
    fold = _Fold(instance, operands, where)
    return [_Result(fold, place, type_) for place, type_ in enumerate(instance.outputs[: instance.declared])]


def _has_known_types(instance: Instance) -> bool:
    """Whether no extent of a result depends on elements, or is open."""
    return not instance.sizes and not any(is_symbolic(extent) for type_ in instance.outputs for extent in type_.shape)


def _arrays(operands: Sequence[Array | Later | None]) -> list[Array | None]:
    return [operand.array() if isinstance(operand, Later) else operand for operand in operands]


def _key(instance: Instance, operands: Sequence[Array | Later | None]) -> _Key | None:
    """What the results follow from; None where that is too much, or objects, or waits."""
    arrays = [operand for operand in operands if not isinstance(operand, Later | None)]
    waits = any(isinstance(operand, Later) for operand in operands)
    if waits or sum(array.size for array in arrays) > _FEW or any(array.dtype.hasobject for array in arrays):
        return None
    parts = (None if o is None or isinstance(o, Later) else (o.dtype, o.shape, o.tobytes()) for o in operands)
    return id(instance), *parts
