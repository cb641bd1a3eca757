"""Which extents a left side makes equal: those for which the signatures of its operators have one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.instantiate import Definitions

Axis = tuple[str, int]
"""A tensor of the left side, and one of its axes: from 0 on, or below 0 from the end."""
_AxisOf = Callable[[int], Axis | None]


def equal_extents(
    base: Definitions, left: s.Pattern, guards: Sequence[s.Expression], ranks: Mapping[str, int]
) -> Iterator[s.Expression]:
    """That extents of which the guards speak are equal wherever the left side matches.

    Args:
        ranks: of the tensors for which the guards say it.
    """
    asked = (node for node in nodes(tuple(guards)) if isinstance(node, s.Expression))
    spoken = list(dict.fromkeys((axis, node) for node in asked if (axis := _axis(node)) is not None))
    if len(spoken) < 2:
        return
    ties = _tied(base, left, dict(ranks), [axis for axis, _ in spoken])
    for (one, first), (other, second) in combinations(spoken, 2):
        if ties.root(one) == ties.root(other):
            yield s.Binary(left.span, "==", first, second)


def free_extents(base: Definitions, left: s.Pattern, tie: s.Expression, ranks: Mapping[str, int]) -> list[str]:
    """Extents of the tensors of a tie that are others than that which the left side makes equal."""
    known = dict(ranks)
    spoken = [axis for node in nodes(tie) if (axis := _axis(node)) is not None]
    _tied(base, left, known, ())
    axes = [
        (tensor, axis) for tensor in dict.fromkeys(one for one, _ in spoken) for axis in range(known.get(tensor, 0))
    ]
    ties = _tied(base, left, known, [*spoken, *axes])
    equal = {ties.root(one) for one in spoken}
    return [f"extent({tensor}, {axis})" for tensor, axis in axes if ties.root((tensor, axis)) not in equal]


def _tied(base: Definitions, left: s.Pattern, ranks: dict[str, int], axes: Iterable[Axis]) -> _Ties:
    """What a left side ties, with axes from the beginning told as axes from the end; ranks are added to those known."""
    ties = _Ties({})
    _walk(base, left, ties, ranks)
    for tensor, axis in axes:
        if axis >= 0 and tensor in ranks:
            ties.join((tensor, axis), (tensor, axis - ranks[tensor]))
    return ties


def _axis(node: s.Syntax) -> Axis | None:
    """The axis of which `extent(x, 1)` or `shape(x)[1]` is the extent."""
    match node:
        case (
            s.Call(function="extent", arguments=(s.Name(id=tensor), axis))
            | s.Subscript(base=s.Call(function="shape", arguments=(s.Name(id=tensor),)), items=(axis,), default=None)
        ):
            match axis:
                case s.Number(value=int(number)):
                    return tensor, number
                case s.Unary(operator="-", operand=s.Number(value=int(number))):
                    return tensor, -number
    return None


class _Ties:
    """Axes of equal extents."""

    def __init__(self, parents: dict[Axis, Axis]) -> None:
        self._parents = parents

    def root(self, axis: Axis) -> Axis:
        """The axis that stands for all of the same extent."""
        while axis in self._parents:
            axis = self._parents[axis]
        return axis

    def join(self, one: Axis, other: Axis) -> None:
        """Two axes have one extent."""
        first, second = self.root(one), self.root(other)
        if first != second:
            self._parents[first] = second


@dataclass(frozen=True, slots=True)
class _Value:
    """What a pattern gives: its rank where that is known, and axes of the variables that have its extents."""

    rank: int | None = None
    axis: _AxisOf = field(default=lambda axis: None)


def _walk(base: Definitions, pattern: s.Pattern, ties: _Ties, ranks: dict[str, int]) -> _Value:
    """Ties what a pattern ties."""
    if isinstance(pattern, s.PatternVariable) and pattern.name != "_":
        return _Value(ranks.get(pattern.name), lambda axis: (pattern.name, axis))
    if not isinstance(pattern, s.PatternOperator):
        return _Value()
    operands = [_walk(base, argument, ties, ranks) for argument in pattern.arguments]
    fitting = [one for one in base.operators.get(pattern.operator, ()) if _takes(one, operands)]
    if len(fitting) != 1 or pattern.variadic is not None:
        return _Value()
    (operator,) = fitting
    meanings: dict[str, Axis] = {}
    lengths: dict[str, int] = {}
    for item, argument, operand in zip(_tensors(operator), pattern.arguments, operands, strict=False):
        shape = item.type.shape if item.type is not None else ()
        spread = _spread(shape)
        if not spread and isinstance(argument, s.PatternVariable):
            ranks.setdefault(argument.name, len(shape))
        if len(spread) == 1 and isinstance(spread[0], s.Name) and operand.rank is not None:
            lengths[spread[0].id] = operand.rank - len(shape) + 1
        for place, name in _named(shape):
            axis = operand.axis(place)
            if axis is not None:
                ties.join(axis, meanings.setdefault(name, axis))
    number = pattern.output or 0
    result = operator.outputs[number].type.shape if number < len(operator.outputs) else (s.Splat(s.NOWHERE, _OPEN),)
    found = {place: meanings[name] for place, name in _named(result) if name in meanings}
    return _Value(_rank(result, lengths), found.get)


_OPEN = s.Name(s.NOWHERE, "?")


def _tensors(operator: s.Operator) -> list[s.Input]:
    return [item for item in operator.inputs if item.constant is None]


def _takes(operator: s.Operator, operands: Sequence[_Value]) -> bool:
    """Whether an overload may take operands of such ranks."""
    tensors = _tensors(operator)
    if len(tensors) < len(operands) or any(item.variadic for item in tensors):
        return False
    for item, operand in zip(tensors, operands, strict=False):
        shape = item.type.shape if item.type is not None else ()
        lists = len(_spread(shape))
        least = len(shape) - lists
        if operand.rank is not None and (operand.rank < least or (not lists and operand.rank != least)):
            return False
    return True


def _spread(shape: Sequence[s.Expression]) -> list[s.Expression]:
    return [one.operand for one in shape if isinstance(one, s.Splat)]


def _rank(shape: Sequence[s.Expression], lengths: Mapping[str, int]) -> int | None:
    """The rank of a result, where the lengths of all lists of extents in it are known."""
    rank = 0
    for extent in shape:
        match extent:
            case s.Splat(operand=s.Name(id=name)) if name in lengths:
                rank += lengths[name]
            case s.Splat(operand=s.Call(function="broadcast", arguments=lists)):
                known = [lengths.get(one.id) if isinstance(one, s.Name) else None for one in lists]
                if None in known:
                    return None
                rank += max(one for one in known if one is not None)
            case s.Splat() | s.Broadcast():
                return None
            case _:
                rank += 1
    return rank


def _named(shape: Sequence[s.Expression]) -> Iterator[tuple[int, str]]:
    """The named extents of a shape, by their places from its end, and before a list of extents from its beginning."""
    spread = [place for place, extent in enumerate(shape) if isinstance(extent, s.Splat | s.Broadcast)]
    for place, extent in enumerate(shape):
        if not isinstance(extent, s.Name):
            continue
        if not spread or place < spread[0]:
            yield place, extent.id
        if not spread or place > spread[-1]:
            yield place - len(shape), extent.id
