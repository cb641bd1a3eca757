"""What expressions of the rule language may name where they are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass, unguarded
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import TensorType


@unguarded(frozen=True)
class TensorName:
    """A tensor of the operator: the name that equations use for it and its type."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class TensorList:
    """A variadic operand."""

    members: Sequence[TensorName]


ABSENT = object()


@dataclass
class Scope:
    """The names visible to an expression."""

    values: dict[str, Value] = field(default_factory=dict)
    tensors: dict[str, TensorName | TensorList | None] = field(default_factory=dict)
    functions: Mapping[str, ast.Function] = field(default_factory=dict)
    queries: Mapping[str, Callable[..., Value]] = field(default_factory=dict)
    term: Callable[[ast.Pattern], TensorType | None] | None = None
    """The type of a term that a rule names."""
    elements: Callable[[ast.Reduction, Scope], Value] | None = None
    """The value of a loop over the elements of constants."""

    def with_values(self, **values: Value) -> Scope:
        return Scope({**self.values, **values}, self.tensors, self.functions, self.queries, self.term, self.elements)
