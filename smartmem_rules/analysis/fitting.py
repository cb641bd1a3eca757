"""Small operands that fulfil what a definition's requirements say of extents.

A definition is instantiated at open extents, one for each name of its signature, at several ranks and attributes. What
a `require` says of extents is fulfilled by making them equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from random import Random

from smartmem_rules.analysis.probes import Drawing, Operand
from smartmem_rules.errors import causes
from smartmem_rules.language import syntax as s
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import Condition
from smartmem_rules.tensor.extents import Dimension, SymbolicExtentError, at, dimensions, is_symbolic, symbol
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Definitions, Instantiation
from smartmem_rules.tensor.types import TensorType

HIGHEST = 1 << 20
RANKS = (2, 3, 1, 2, 1, 3, 4, 0)
_UNIFICATIONS = 16


class _Deaf:
    """Listens to nothing."""

    def inside(self, read: s.Expression) -> None:
        pass

    def undecided(self, read: s.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        pass


def fitting(base: Definitions, operator: s.Operator, number: int) -> tuple[list[Operand], dict[str, Value], int] | None:
    """Small operands, attributes and a number of outputs that fulfil what the requirements say of extents.

    None where this drawing gives none.
    """
    found = _attempt(base, operator, number, _Deaf())
    if found is None:
        return None
    operands, attributes, outputs = found
    source = Random(number)
    open_ = {d for operand in operands if operand is not None for n in operand.shape for d in dimensions(n)}
    values = {d.name: source.choice((2, 3, 4, 6)) for d in sorted(open_, key=lambda d: d.name)}
    made: list[Operand] = [
        None if operand is None else TensorType(operand.dtype, tuple(int(at(n, values)) for n in operand.shape))
        for operand in operands
    ]
    return made, attributes, outputs


def _attempt(
    base: Definitions, operator: s.Operator, number: int, watch: Watch
) -> tuple[list[Operand], dict[str, Value], int] | None:
    same: dict[Dimension, int] = {}
    for _ in range(_UNIFICATIONS):
        drawing = _OpenDrawing(base, operator, Random(number), number, same=same)
        making: Instantiation | None = None
        try:
            operands, attributes = drawing.operands({}), drawing.attributes({})
            making = Instantiation(base, operator, operands, attributes, drawing.outputs)
            making.watch = watch
            making.run(types_only=False)
            return operands, attributes, drawing.outputs
        except (SymbolicExtentError, Unsupported, DefinitionError) as failure:
            sides = _sides(failure)
            if sides is not None and _unify(sides, same):
                continue
            if making is None or not any([_unify(pair, same) for pair in _wanted(operator, making.scope)]):
                return None
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            return None
    return None


def _sides(failure: BaseException) -> tuple[int, int] | None:
    """The two extents of which it is not decided whether they are equal."""
    return next((cause.sides for cause in causes(failure) if isinstance(cause, SymbolicExtentError)), None)


def _wanted(operator: s.Operator, scope: Scope) -> Iterator[tuple[int, int]]:
    """Pairs of extents that the requirements want to be equal."""
    for requirement in operator.requires:
        yield from _equalities(requirement, scope)


def _equalities(expr: s.Expression, scope: Scope) -> Iterator[tuple[int, int]]:
    match expr:
        case s.Binary(operator="and", left=left, right=right):
            yield from _equalities(left, scope)
            yield from _equalities(right, scope)
        case s.Binary(operator="or", left=left, right=right):
            if not _holds(left, scope):
                yield from _equalities(left, scope)
                yield from _equalities(right, scope)
        case s.Conditional(condition=condition, then=then, otherwise=otherwise):
            yield from _equalities(then if _holds(condition, scope) else otherwise, scope)
        case s.Binary(operator="==", left=left, right=right):
            try:
                one, other = evaluate(left, scope), evaluate(right, scope)
            except (SymbolicExtentError, DefinitionError, Unsupported):
                return
            pairs = (
                zip(one, other, strict=False) if isinstance(one, tuple) and isinstance(other, tuple) else [(one, other)]
            )
            for first, second in pairs:
                if isinstance(first, int) and isinstance(second, int) and first != second:
                    yield first, second
        case _:
            return


def _holds(expr: s.Expression, scope: Scope) -> bool:
    try:
        return truth(expr, scope)
    except (SymbolicExtentError, DefinitionError, Unsupported):
        return False


def _unify(sides: tuple[int, int], same: dict[Dimension, int]) -> bool:
    """Make two extents equal by giving one open extent the value of the other side."""
    for one, other in (sides, sides[::-1]):
        if not is_symbolic(one):
            continue
        for dimension in sorted(dimensions(one), key=lambda d: d.name):
            if one == symbol(dimension) and dimension not in dimensions(other) and dimension not in same:
                same[dimension] = other
                return True
    return False


@dataclass
class _OpenDrawing(Drawing):
    """Operands whose extents are open."""

    same: Mapping[Dimension, int] = field(default_factory=dict)

    def _open(self, name: str) -> int:
        dimension = Dimension(name, 2, HIGHEST)
        return self.same.get(dimension, symbol(dimension))

    def _extent(self, name: str) -> int:
        value = self.extents.setdefault(name, self._open(name))
        return value if isinstance(value, int) else 1

    def _list(self, pattern: s.Expression) -> tuple[int, ...]:
        if not isinstance(pattern, s.Name):
            return ()
        if pattern.id not in self.extents:
            bound = [v for v in self.extents.values() if isinstance(v, tuple)]
            if bound and self.random.random() < 0.5:
                self.extents[pattern.id] = self.random.choice(bound)
            else:
                rank = RANKS[self.number % len(RANKS)] if self.random.random() < 0.5 else self.random.choice(RANKS)
                self.extents[pattern.id] = tuple(self._open(f"{pattern.id}_{axis}") for axis in range(rank))
        value = self.extents[pattern.id]
        return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()
