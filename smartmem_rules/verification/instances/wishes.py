"""What guards want of the types and shapes of tensors: where chance finds too few instances, operands are drawn so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.records import dataclass
from smartmem_rules.verification.instances.draws import Shape
from smartmem_rules.verification.semantics.terms import Leaf

Ranks = tuple[float, float]
_ANY_RANK: Ranks = (0, math.inf)
_SINGLE: tuple[Shape, ...] = ((), (1,))
_TRIES = 12


@dataclass(frozen=True)
class Wishes:
    """By name, what guards want of tensors.

    Attributes:
        types: their element types.
        ranks: the least and the greatest number of their axes.
        alike: tensors of one element type.
        congruent: tensors of one shape.
        single: tensors of one element.
        extents: of some axes the least extent, by the number of the axis, which may count from the end.
    """

    types: dict[str, list[str]] = field(default_factory=dict)
    ranks: dict[str, Ranks] = field(default_factory=dict)
    alike: list[tuple[str, str]] = field(default_factory=list)
    congruent: list[tuple[str, str]] = field(default_factory=list)
    single: set[str] = field(default_factory=set)
    extents: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def most_elements(self) -> int:
        """The elements that the largest tensor has at least."""
        return max((math.prod(least.values()) for least in self.extents.values()), default=0)

    def only_shape(
        self, name: str, leaves: Mapping[str, Leaf], drawn: Shape | None, source: random.Random
    ) -> Shape | None:
        """The shape that a tensor has to have; None where guards leave that open.

        Args:
            leaves: the tensors that have a shape already.
            drawn: the shape that an earlier draw gave it.
        """
        for one, other in self.congruent:
            leaf = leaves.get(other if one == name else one if other == name else name)
            if leaf is not None and leaf.name != name:
                return leaf.type.shape
        if name in self.single:
            return drawn if drawn in _SINGLE else source.choice(_SINGLE)
        return None

    def of_its_rank(self, name: str, fixed: int | None, draw: Callable[[], Shape]) -> Shape:
        """A shape of a rank that guards, and the tensor's reader, want, where some draws give one."""
        least, most = self.ranks.get(name, _ANY_RANK)
        shape = draw()
        for _ in range(_TRIES):
            if least <= len(shape) <= most and fixed in (None, len(shape)):
                break
            shape = draw()
        return self._long_enough(name, shape)

    def _long_enough(self, name: str, shape: Shape) -> Shape:
        """A shape with the extents that guards want; where these make many elements, other axes have one or two."""
        axes = self.extents.get(name, {}).items()
        wanted = {axis % len(shape): n for axis, n in axes if -len(shape) <= axis < len(shape)}
        if all(shape[axis] >= n for axis, n in wanted.items()):
            return shape
        return tuple(wanted.get(axis, min(n, 2)) for axis, n in enumerate(shape))


def wishes_of(guards: Sequence[ast.Expression]) -> Wishes:
    """What guards that all hold want."""
    wishes = Wishes()
    for part in conjuncts(*guards):
        _note(part, wishes)
        for name, (least, most) in _ranks(part).items():
            before = wishes.ranks.get(name, _ANY_RANK)
            wishes.ranks[name] = max(before[0], least), min(before[1], most)
        _note_extent(part, wishes)
    for one, other in wishes.alike:
        words = wishes.types.get(one, wishes.types.get(other, []))
        wishes.types.setdefault(one, words)
        wishes.types.setdefault(other, words)
    return wishes


def _note(part: ast.Expression, wishes: Wishes) -> None:
    match part:
        case ast.Call(function="contains", arguments=(ast.ListOf(items=items), subject)):
            function, name = _asked(subject)
            if function == "dtype":
                wishes.types.setdefault(name, []).extend(word.value for word in items if isinstance(word, ast.Text))
        case ast.Binary(operator="==", left=left, right=right):
            _note_equation(_asked(left), right, wishes)
        case _:
            pass


def _note_equation(left: tuple[str, str], right: ast.Expression, wishes: Wishes) -> None:
    function, name = left
    match right:
        case ast.Text(value=word) if function == "dtype":
            wishes.types.setdefault(name, []).append(word)
        case ast.Number(value=1) if function == "prod":
            wishes.single.add(name)
        case ast.Call() if _asked(right)[0] == function:
            pairs = {"dtype": wishes.alike, "shape": wishes.congruent}.get(function, [])
            pairs.append((name, _asked(right)[1]))
        case _:
            pass


def _note_extent(part: ast.Expression, wishes: Wishes) -> None:
    match part:
        case ast.Binary(
            operator="==" | ">=" | ">" as operator,
            left=ast.Call(function="extent", arguments=(ast.Name(id=name), axis)),
            right=ast.Number(value=int(number)),
        ):
            place = _place(axis)
            if place is not None:
                wanted = wishes.extents.setdefault(name, {})
                wanted[place] = max(wanted.get(place, 1), number + (operator == ">"))
        case _:
            pass


def _place(axis: ast.Expression) -> int | None:
    """The number of an axis where it is written as one."""
    match axis:
        case ast.Number(value=int(number)):
            return number
        case ast.Unary(operator="-", operand=ast.Number(value=int(number))):
            return -number
        case _:
            return None


def _ranks(part: ast.Expression) -> dict[str, Ranks]:
    """The numbers of axes that a condition leaves open to tensors."""
    match part:
        case ast.Binary(operator="or", left=left, right=right):
            one, other = _ranks(left), _ranks(right)
            return {n: (min(one[n][0], other[n][0]), max(one[n][1], other[n][1])) for n in one.keys() & other.keys()}
        case ast.Binary(operator="and", left=left, right=right):
            return {**_ranks(left), **_ranks(right)}
        case ast.Binary(operator=operator, left=left, right=ast.Number(value=number)):
            function, name = _asked(left)
            ranges: dict[str, Ranks] = {
                "==": (number, number), ">=": (number, math.inf), ">": (number + 1, math.inf),
                "<=": (0, number), "<": (0, number - 1),
            }  # fmt: skip
            return {name: ranges[operator]} if function == "rank" and operator in ranges else {}
    return {}


def _asked(expression: ast.Expression) -> tuple[str, str]:
    """What is asked of a tensor, and the tensor; the number of its elements is `prod`."""
    match expression:
        case ast.Call(function="prod", arguments=(ast.Call(function="shape", arguments=(ast.Name(id=name),)),)):
            return "prod", name
        case ast.Call(function=function, arguments=(ast.Name(id=name),)):
            return function, name
    return "", ""
