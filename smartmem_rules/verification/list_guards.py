"""What guards say about the elements of lists that a pattern binds: a drawn list is made one of which they hold."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cached_property

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.instantiate import names_in

_ROUNDS = 80
_COMPARED = 0.6
"""Changes of an element that are tried for one list, and the share of them to what a failing guard compares with."""
_LONGEST = 16
_NUMBERS = (0, 1, 1, 2, 2, 3, -1)

Whole = tuple[int, ...]


@dataclass(frozen=True)
class ListGuards:
    """The guards of a rule that speak of lists of whole numbers."""

    guards: Sequence[ast.Expression]

    @cached_property
    def of_elements(self) -> dict[str, list[tuple[ast.Expression, frozenset[str]]]]:
        """By the name that they subscript or hand to a function: the guards, and all names of which each speaks."""
        found: dict[str, list[tuple[ast.Expression, frozenset[str]]]] = {}
        for guard in conjuncts(*self.guards):
            names = frozenset(names_in(guard))
            for name in sorted(_read_inside(guard)):
                found.setdefault(name, []).append((guard, names))
        return found

    def fitted(self, name: str, drawn: Value, scope: Scope, source: random.Random) -> Value:
        """A list of which those guards hold that can be decided already; the drawn one where none is found.

        Equations give its length and some elements; the others are drawn, and drawn again where guards refuse them.
        """
        if name not in self.of_elements or not isinstance(drawn, tuple):
            return drawn
        numbers = tuple(number for number in drawn if isinstance(number, int))
        known = scope.values.keys() | scope.tensors.keys() | {name}
        guards = [guard for guard, names in self.of_elements[name] if names <= known]
        if not guards or len(numbers) < len(drawn):
            return drawn
        return _Fitting(name, guards, scope, source).of(numbers)


@dataclass(frozen=True)
class _Fitting:
    name: str
    guards: Sequence[ast.Expression]
    scope: Scope
    source: random.Random

    def of(self, drawn: Whole) -> Whole:
        found, fixed = self._solved(self._long_enough(drawn))
        failing = self._failing(found)
        free = [place for place in range(len(found)) if place not in fixed]
        for _ in range(_ROUNDS if free else 0):
            if not failing:
                break
            other = list(found)
            place, number = self._change(self.source.choice(failing), free)
            other[place] = number
            left = self._failing(tuple(other))
            if len(left) <= len(failing):
                found, failing = tuple(other), left
        return drawn if failing else found

    def _change(self, guard: ast.Expression, free: Sequence[int]) -> tuple[int, int]:
        """A place, and a number to try there for the sake of a guard: what it compares with, or a small one."""
        compared = self._compared(guard)
        numbers = compared if compared and self.source.random() < _COMPARED else _NUMBERS
        return self.source.choice(free), self.source.choice(numbers)

    def _long_enough(self, drawn: Whole) -> Whole:
        """The list with as many elements as guards want."""
        length = next(self._lengths(drawn), len(drawn))
        more = (self.source.choice(_NUMBERS) for _ in range(length - len(drawn)))
        return (*drawn[:length], *more)

    def _lengths(self, drawn: Whole) -> Iterator[int]:
        for one, other in self._equations():
            match one:
                case ast.Call(function="rank", arguments=(ast.Name(id=self.name),)):
                    value = self._value(other, drawn)
                    if isinstance(value, int) and 0 <= value <= _LONGEST:
                        yield value

    def _solved(self, drawn: Whole) -> tuple[Whole, set[int]]:
        """The list with the elements that equations give, and the places of these."""
        elements, fixed = list(drawn), set[int]()
        for one, other in self._equations():
            match one:
                case ast.Subscript(base=ast.Name(id=self.name), items=(item,)):
                    places = self._places(item, tuple(elements))
                    value = self._value(other, tuple(elements))
                case _:
                    continue
            values = value if isinstance(value, tuple) else (value,) * len(places)
            whole = [number for number in values if isinstance(number, int)]
            if len(whole) == len(places):
                fixed.update(places)
                for place, number in zip(places, whole, strict=True):
                    elements[place] = number
        return tuple(elements), fixed

    def _compared(self, guard: ast.Expression) -> list[int]:
        """The numbers that a guard compares elements with, and their neighbours."""
        if not isinstance(guard, ast.Binary):
            return []
        sides = [side for side in (guard.left, guard.right) if self.name not in names_in(side)]
        values = [self._value(side, ()) for side in sides]
        return [value + step for value in values if type(value) is int for step in (0, 1, -1)]

    def _equations(self) -> Iterator[tuple[ast.Expression, ast.Expression]]:
        for guard in self.guards:
            if isinstance(guard, ast.Binary) and guard.operator == "==":
                yield guard.left, guard.right
                yield guard.right, guard.left

    def _places(self, item: ast.Expression, elements: Whole) -> Sequence[int]:
        """The places that an index, or a range of them, names."""
        every = range(len(elements))
        if isinstance(item, ast.Slice):
            bounds = [None if part is None else self._value(part, elements) for part in (item.low, item.high)]
            low, high = (bound if isinstance(bound, int) else None for bound in bounds)
            return every[low:high]
        place = self._value(item, elements)
        return [every[place]] if isinstance(place, int) and -len(every) <= place < len(every) else []

    def _value(self, expression: ast.Expression, elements: Whole) -> Value:
        try:
            return evaluate(expression, self._seen(elements))
        except (DefinitionError, Unsupported):
            return None

    def _failing(self, elements: Whole) -> list[ast.Expression]:
        """The guards that do not hold of the list; one that cannot be decided yet may."""
        seen = self._seen(elements)
        return [guard for guard in self.guards if _is_refuted(guard, seen)]

    def _seen(self, elements: Whole) -> Scope:
        return self.scope.with_values(**{self.name: elements})


def _is_refuted(guard: ast.Expression, seen: Scope) -> bool:
    try:
        return not truth(guard, seen)
    except (DefinitionError, Unsupported):
        return False


def _read_inside(guard: ast.Expression) -> set[str]:
    """The names whose elements, or length, a guard asks for."""
    found = set()
    for node in nodes(guard):
        match node:
            case ast.Subscript(base=ast.Name(id=name)):
                found.add(name)
            case ast.Call(arguments=arguments):
                found |= {one.id for one in arguments if isinstance(one, ast.Name)}
            case _:
                pass
    return found
