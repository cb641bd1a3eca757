"""What the guards of a rule see of an instance: types, constants and their values, readers, and terms by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from smartmem_rules.egraph.matching import queries
from smartmem_rules.egraph.model import Meta
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.printing.printer import print_pattern
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.queries import QUERIES
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.verification.semantics.domains import Domain, Undefined
from smartmem_rules.verification.semantics.evaluate import TooLarge
from smartmem_rules.verification.semantics.terms import Leaf, Term, compute, leaves


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What an instance has decided.

    Attributes:
        leaves: the tensors that the left side binds.
        members: its lists of operands.
        constants: the tensors that are known when the model is optimized.
        uniform: those of them all of whose elements have one value.
        uses: how many operators read a tensor or term.
        term: the term of a pattern of the rule.
    """

    leaves: Mapping[str, Leaf]
    members: Mapping[str, tuple[Term, ...]]
    constants: frozenset[str]
    uniform: Mapping[str, float]
    uses: Callable[[str], int]
    term: Callable[[ast.Pattern], Term]


class _Queries(Mapping[str, Callable[..., Value]]):
    """What guards may ask of the tensors of a scope, made where they do: most scopes are asked nothing of it."""

    def __init__(self, tensors: Mapping[str, TensorName | TensorList | None], uniform: Mapping[str, float]) -> None:
        self._tensors = tensors
        self._uniform = dict(uniform)

    @lazy
    def _made(self) -> Mapping[str, Callable[..., Value]]:
        places = {name: place for place, name in enumerate(self._uniform)}
        numbers = dict(enumerate(self._uniform.values()))
        host: Any = SimpleNamespace(constants=SimpleNamespace(uniform=numbers.get))
        return queries(host, _Metas(self._tensors, places))

    def get(self, name: str, default: Any = None) -> Any:
        return self._made[name] if name in QUERIES else default

    def __getitem__(self, name: str) -> Callable[..., Value]:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(QUERIES)

    def __len__(self) -> int:
        return len(QUERIES)


class _Metas(Mapping[str, Meta]):
    """What guards may ask of tensors, made where they do: most scopes are asked of one tensor or of none."""

    def __init__(self, tensors: Mapping[str, TensorName | TensorList | None], places: Mapping[str, int]) -> None:
        self._tensors = tensors
        self._places = places

    def __getitem__(self, name: str) -> Meta:
        tensor = self._tensors[name]
        if not isinstance(tensor, TensorName):
            raise KeyError(name)
        return Meta(tensor.type, self._places.get(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def partial_scope(
    leaves: Iterable[Leaf],
    values: dict[str, Value],
    functions: Mapping[str, ast.Function],
    uniform: Mapping[str, float],
) -> Scope:
    """What guards and definitions may ask while an instance is drawn: of the tensors and values that are there."""
    tensors: dict[str, TensorName | TensorList | None] = {
        leaf.name: TensorName(leaf.name, leaf.type) for leaf in leaves
    }
    return Scope(values, tensors, functions, _Queries(tensors, uniform))


def complete_scope(scope: Scope, seen: Seen) -> None:
    """Let a scope answer all that guards may ask."""
    bound: dict[str, Meta | list[Meta]] = {}
    values: dict[int, float | None] = {}
    for name, leaf in seen.leaves.items():
        number = None
        if name in seen.constants:
            number = len(values)
            values[number] = seen.uniform.get(name)
        bound[name] = Meta(leaf.type, number, seen.uses(name))
        scope.tensors[name] = TensorName(name, leaf.type)
    for name, members in seen.members.items():
        bound[name] = [Meta(m.type) for m in members]
        scope.tensors[name] = TensorList(tuple(TensorName(f"{name}{j}", m.type) for j, m in enumerate(members)))
    host = SimpleNamespace(constants=SimpleNamespace(uniform=values.get))

    def term(pattern: ast.Pattern) -> Meta:
        made = seen.term(pattern)
        number = None
        if all(name in seen.constants or leaf.number is not None for name, leaf in leaves(made).items()):
            number = len(values)
            values[number] = _value_of(made, seen.uniform)
        return Meta(made.type, number, seen.uses(print_pattern(pattern)))

    scope.queries = queries(host, bound, term)  # type: ignore[arg-type]
    scope.term = lambda pattern: term(pattern).type


def _value_of(term: Term, uniform: Mapping[str, float]) -> float | None:
    """The number that all elements of a term of constants equal; None where they differ, or some have no value."""
    domain = Domain()
    numbers = {name: uniform.get(name, leaf.number) for name, leaf in leaves(term).items()}
    given = {
        name: tuple(np.broadcast_to(v, leaf.type.shape) for v in domain.constant(number, leaf.type.dtype))
        for name, leaf in leaves(term).items()
        if (number := numbers[name]) is not None
    }
    if len(given) < len(numbers):
        return None
    try:
        found = np.asarray(compute(term, given, domain)[0])
    except (Undefined, TooLarge, ArithmeticError, IndexError):
        return None
    return float(found.flat[0]) if found.size and bool((found == found.flat[0]).all()) else None
