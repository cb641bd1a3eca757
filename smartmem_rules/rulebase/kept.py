"""Which operators of constants are not computed before the model runs, by the `keep` rules of a rule base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from smartmem_rules.guards.constant_elements import over_elements
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.formals import by_formals
from smartmem_rules.rulebase.queries import queries_of
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, truth
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Definitions, Instance
from smartmem_rules.tensor.primitives import Array


class KeepRules(Definitions, Protocol):
    """The part of a rule base that decides what is kept."""

    @property
    def keeps(self) -> Sequence[ast.Keep]: ...


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A constant operand of an operator.

    Attributes:
        uniform: gives the number that all its elements equal, None where they differ.
        elements: gives its elements, None where there are too many to look at.
    """

    type: TensorType
    uniform: Callable[[], float | None]
    elements: Callable[[], Array | None]


def keeping_rule(base: KeepRules, instance: Instance, operands: Sequence[Constant | None]) -> ast.Keep | None:
    """The first rule that keeps an operator of constants from being computed before the model runs."""
    own = [rule for rule in base.keeps if rule.operator == instance.operator.name]
    return next((rule for rule in own if keeps(rule, base, instance, operands)), None)


def keeps(rule: ast.Keep, base: Definitions, instance: Instance, operands: Sequence[Constant | None]) -> bool:
    """Whether the guards of a `keep` rule of the operator hold."""
    scope = _scope(base, instance, operands)
    try:
        return all(truth(guard, scope) for guard in rule.guards)
    except (DefinitionError, Unsupported):
        return False


def _scope(base: Definitions, instance: Instance, operands: Sequence[Constant | None]) -> Scope:
    """What the guards of a `keep` rule see: the inputs, attributes and extents of the operator."""
    bound = by_formals(instance.operator, operands)
    tensors: dict[str, TensorName | TensorList | None] = {}
    for name, one in bound.items():
        if isinstance(one, Constant):
            tensors[name] = TensorName(name, one.type)
        else:
            tensors[name] = TensorList(tuple(TensorName(f"{name}{j}", member.type) for j, member in enumerate(one)))

    def elements(name: str) -> Array | None:
        one = bound.get(name)
        return one.elements() if isinstance(one, Constant) else None

    scope = Scope(dict(instance.values), tensors, base.functions, queries_of(bound, _Answers()))
    scope.elements = over_elements(elements)
    return scope


class _Answers:
    def rank(self, subject: Constant) -> int:
        return len(subject.type.shape)

    def constant(self, subject: Constant) -> bool:
        del subject
        return True

    def value(self, subject: Constant) -> float | None:
        return subject.uniform()

    def uses(self, subject: Constant, name: str) -> int:
        del subject
        raise DefinitionError(f"how often {name} is used is not known before the model is imported")
