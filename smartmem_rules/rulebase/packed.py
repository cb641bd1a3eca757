"""Operators of rule files that were checked before: each is read when it is first asked for.

Operators are nine tenths of the built-in rules, and a model uses few of them. What is asked of all of them, which are
commutative and which stand for an operator of ONNX, is kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

from smartmem_rules.language import cache, syntax as s
from smartmem_rules.records import dataclass

Binding = tuple[str | None, str]
"""The domain and the name of an ONNX operator; None for the domain of ONNX's own."""


@dataclass(frozen=True)
class Index:
    """What is asked of all operators.

    Attributes:
        commutative: the names of those with a commutative overload.
        bound: by an operator of ONNX, the names of those with an overload that stands for it, in order.
    """

    commutative: frozenset[str]
    bound: Mapping[Binding, tuple[str, ...]]

    @staticmethod
    def of(operators: Mapping[str, Sequence[s.Operator]]) -> Index:
        """That of some operators, known beforehand for packed ones."""
        if isinstance(operators, PackedOperators) and operators.index is not None:
            return operators.index
        bound: dict[Binding, dict[str, None]] = {}
        for name, overloads in operators.items():
            for one in overloads:
                if not one.internal:
                    bound.setdefault(binding_of(one), {})[name] = None
        commutative = (name for name, overloads in operators.items() if any(o.commutative for o in overloads))
        return Index(frozenset(commutative), {binding: tuple(names) for binding, names in bound.items()})


def binding_of(operator: s.Operator) -> Binding:
    """The operator of ONNX that an overload stands for."""
    return (None, operator.name) if operator.onnx is None else (operator.onnx.domain, operator.onnx.name)


class PackedOperators(MutableMapping[str, list[s.Operator]]):
    """The overloads by name, as a dict has them.

    Attributes:
        index: None where operators were changed.
    """

    def __init__(self, operators: Mapping[str, Sequence[s.Operator]]) -> None:
        self.index: Index | None = Index.of(operators)
        self._packed = {name: cache.packed(tuple(overloads)) for name, overloads in operators.items()}
        self._read: dict[str, tuple[s.Operator, ...]] = {}
        """Shared by copies, in which an operator is one object."""
        self._lists: dict[str, list[s.Operator] | None] = dict.fromkeys(operators)

    def __copy__(self) -> PackedOperators:
        """One that can be changed by itself."""
        copied = PackedOperators.__new__(PackedOperators)
        copied.index, copied._packed, copied._read = self.index, self._packed, self._read
        copied._lists = {name: None if known is None else list(known) for name, known in self._lists.items()}
        return copied

    def __getitem__(self, name: str) -> list[s.Operator]:
        known = self._lists[name]
        if known is None:
            known = self._lists[name] = list(self._overloads(name))
        return known

    def _overloads(self, name: str) -> tuple[s.Operator, ...]:
        known = self._read.get(name)
        # of two threads that read one operator, both get what was there first
        return known if known is not None else self._read.setdefault(name, cache.unpacked(self._packed[name]))

    def __setitem__(self, name: str, overloads: list[s.Operator]) -> None:
        self.index = None
        self._lists[name] = overloads

    def __delitem__(self, name: str) -> None:
        self.index = None
        del self._lists[name]

    def __contains__(self, name: object) -> bool:
        return name in self._lists

    def __iter__(self) -> Iterator[str]:
        return iter(self._lists)

    def __len__(self) -> int:
        return len(self._lists)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_read": {}}
