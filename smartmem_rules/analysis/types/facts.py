"""What guards say of tensors that their types do not: constants, values, ranks, element types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import ALL_DTYPES


@dataclass(frozen=True)
class Facts:
    """What guards say of tensors that types do not."""

    constants: frozenset[str]
    values: Mapping[str, float]
    present: frozenset[str]
    ranks: Mapping[str, int]
    dtypes: tuple[str, ...] = ()
    """Element types that guards name; a drawing that prefers others would satisfy none of these guards."""
    alike: Mapping[str, str] = field(default_factory=dict)
    """Tensors with another one that has the same shape."""

    @staticmethod
    def of(guards: tuple[s.Expression, ...]) -> Facts:
        constants: set[str] = set()
        values: dict[str, float] = {}
        present: set[str] = set()
        ranks: dict[str, int] = {}
        alike: dict[str, str] = {}
        for guard in conjuncts(*guards):
            match guard:
                case s.Call(function="constant", arguments=(s.Name(id=name),)):
                    constants.add(name)
                case s.Call(function="present", arguments=(s.Name(id=name),)):
                    present.add(name)
                case s.Binary(
                    operator="==",
                    left=s.Call(function="rank", arguments=(s.Name(id=name),)),
                    right=s.Number(value=int(rank)),
                ):
                    ranks[name] = rank
                case s.Binary(
                    operator="==",
                    left=s.Call(function="shape", arguments=(s.Name(id=one),)),
                    right=s.Call(function="shape", arguments=(s.Name(id=other),)),
                ):
                    alike |= {one: other, other: one}
            pair = _value_and_number(guard)
            if pair is not None:
                values[pair[0]] = pair[1]
        texts = (node.value for node in nodes(guards) if isinstance(node, s.Text) and node.value in ALL_DTYPES)
        dtypes = tuple(dict.fromkeys(texts))
        return Facts(frozenset(constants), values, frozenset(present), ranks, dtypes, alike)

    def wanted(self, number: int) -> tuple[str, ...]:
        """The element types that an attempt draws first: another one in each, and in some the usual ones."""
        place = number % (len(self.dtypes) + 1)
        return self.dtypes[place : place + 1]


def _value_and_number(guard: s.Expression) -> tuple[str, float] | None:
    """`near(value(c), 2)` or `a == 2`."""
    if isinstance(guard, s.Call) and guard.function == "near" and len(guard.arguments) == 2:
        name, number = guard.arguments
    elif isinstance(guard, s.Binary) and guard.operator == "==":
        name, number = guard.left, guard.right
    else:
        return None
    if isinstance(name, s.Call) and name.function == "value" and name.arguments:
        name = name.arguments[0]
    if isinstance(name, s.Name) and isinstance(number, s.Number):
        return name.id, number.value
    return None


def facts_of(guards: tuple[s.Expression, ...]) -> Facts:
    """What guards say of tensors that types do not."""
    return Facts.of(guards)
