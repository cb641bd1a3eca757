"""Operator instances, each computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.instantiate import Definitions, Instance, instantiate


def attribute_key(attributes: Mapping[str, object]) -> str:
    """The canonical text of attributes; equal texts mean equal attributes."""
    return "; ".join([f"{name}={attributes[name]!r}" for name in sorted(attributes)]) if attributes else ""


def _key(
    operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int
) -> tuple[object, ...]:
    # of each type its parts, which are hashed and compared without a call
    types = [None if type_ is None else (type_.dtype, type_.shape) for type_ in operands]
    return operator, *types, attribute_key(attributes), outputs


class Instances:
    """A cache of `tensor.instantiate.instantiate` for one rule base."""

    def __init__(self, base: Definitions) -> None:
        self.base = base
        self._known: dict[tuple[object, ...], Instance | Unsupported] = {}

    def get(
        self, operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int = 1
    ) -> Instance:
        """The operator at these types.

        Raises:
            Unsupported: no overload accepts the operands, or its definition fails on them.
        """
        key = _key(operator, operands, attributes, outputs)
        found = self._known.get(key)
        if found is None:
            try:
                found = instantiate(self.base, operator, operands, attributes, outputs)
            except Unsupported as reason:
                found = reason.with_traceback(None)
            except (DefinitionError, SymbolicExtentError) as reason:
                found = Unsupported(str(reason))
            self._known[key] = found
        if isinstance(found, Unsupported):
            raise found.with_traceback(None)  # each time it is raised would add to what is kept
        return found

    def known(
        self, operator: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int
    ) -> Instance | None:
        """What `get` gave before; None where it was not asked, or where no overload accepts the operands."""
        found = self._known.get(_key(operator, operands, attributes, outputs))
        return None if isinstance(found, Unsupported) else found

    def put(
        self, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], outputs: int, instance: Instance
    ) -> None:
        """Take in what `get` would give: an instance of the first overload that accepts the operands."""
        self._known[_key(instance.operator.name, operands, attributes, outputs)] = instance
