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
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate, truth
from smartmem_rules.tensor.definitions.watch import Watch
from smartmem_rules.tensor.expr import Condition
from smartmem_rules.tensor.extents import (
    Dimension,
    SymbolicExtentError,
    at,
    dimensions,
    is_symbolic,
    made_of,
    symbol,
    terms_of,
)
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Definitions, Instantiation
from smartmem_rules.tensor.types import TensorType

HIGHEST = 1 << 20
RANKS = (2, 3, 1, 2, 1, 3, 4, 0)
_UNIFICATIONS = 16
_MOST_AXES = 8
"""Axes of the tensors of largest rank that are tried."""
_STEPS = 64
"""Remainders of a factor that are tried."""


class _Deaf:
    """Listens to nothing."""

    def inside(self, read: s.Expression) -> None:
        pass

    def undecided(self, read: s.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        pass


def fitting(base: Definitions, operator: s.Operator, number: int) -> tuple[list[Operand], dict[str, Value], int] | None:
    """Small operands, attributes and a number of outputs that fulfil what the requirements say of extents.

    None where this drawing gives none.

    Raises:
        DefinitionError: what no other operands can mend.
    """
    found = _attempt(base, operator, number, _Deaf())
    if found is None:
        return None
    operands, attributes, outputs = found
    source = Random(number)
    open_ = {d for operand in operands if operand is not None for n in operand.shape for d in dimensions(n)}
    drawn = {d: source.choice((2, 3, 4, 6)) for d in sorted(open_, key=lambda d: d.name)}
    values = {d.name: min(n if d.low <= 2 else d.low + n - 2, d.high) for d, n in drawn.items()}
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
            if isinstance(failure, DefinitionError) and is_certain(failure):
                raise
            sides = _sides(failure)
            if sides is not None and _unify(sides, same):
                continue
            if making is None or not any([_fulfil(one, same) for one in _wanted(operator, making.scope)]):
                return None
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            return None
    return None


def _sides(failure: BaseException) -> tuple[int, int] | None:
    """The two extents of which it is not decided whether they are equal."""
    return next((cause.sides for cause in causes(failure) if isinstance(cause, SymbolicExtentError)), None)


_Wanted = tuple[str, int, int]
"""A comparison with the values of its sides."""


def _wanted(operator: s.Operator, scope: Scope) -> Iterator[_Wanted]:
    """What the requirements want of extents."""
    for requirement in operator.requires:
        yield from _comparisons(requirement, scope)


def _comparisons(expr: s.Expression, scope: Scope) -> Iterator[_Wanted]:
    if _holds(expr, scope):
        return
    match expr:
        case s.Binary(operator="and", left=left, right=right):
            yield from _comparisons(left, scope)
            yield from _comparisons(right, scope)
        case s.Binary(operator="or", left=left, right=right):
            yield from _comparisons(left, scope)
            yield from _comparisons(right, scope)
        case s.Conditional(condition=condition, then=then, otherwise=otherwise):
            yield from _comparisons(then if _holds(condition, scope) else otherwise, scope)
        case s.Binary(operator="==", left=s.Binary(operator="%", left=left, right=right), right=s.Number(value=0)):
            yield from (("%", first, second) for first, second in _values(left, right, scope))
        case s.Binary(operator="==" | "<" | "<=" | ">" | ">=" as operator, left=left, right=right):
            yield from ((operator, first, second) for first, second in _values(left, right, scope))
        case _:
            return


def _values(left: s.Expression, right: s.Expression, scope: Scope) -> Iterator[tuple[int, int]]:
    """The values of two sides where they are not the same number, one by one where they are lists."""
    try:
        one, other = evaluate(left, scope), evaluate(right, scope)
    except (SymbolicExtentError, DefinitionError, Unsupported):
        return
    pairs = zip(one, other, strict=False) if isinstance(one, tuple) and isinstance(other, tuple) else [(one, other)]
    for first, second in pairs:
        if isinstance(first, int) and isinstance(second, int) and first != second:
            yield first, second


def _fulfil(wanted: _Wanted, same: dict[Dimension, int]) -> bool:
    """Give an open extent a value, or a range, with which a comparison holds."""
    operator, first, second = wanted
    if operator == "==":
        return _unify((first, second), same)
    found = _single(first)
    if operator == "%":
        if found is None or is_symbolic(second) or found[0] in same:
            return False
        return _unify((first, second * symbol(Dimension(f"times_{found[0].name}", 2, HIGHEST))), same)
    if found is None:
        found, operator, second = _single(second), _TURNED[operator], first
    if found is None or is_symbolic(second):
        return False
    dimension, factor = found
    low, high = dimension.low, dimension.high
    if operator in (">", ">="):
        low = max(low, -(-(second + (operator == ">")) // factor))
    else:
        high = min(high, (second - (operator == "<")) // factor)
    if dimension in same or low > high or (low, high) == (dimension.low, dimension.high):
        return False
    _give(dimension, symbol(Dimension(f"{dimension.name}_", low, high)), same)
    return True


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _holds(expr: s.Expression, scope: Scope) -> bool:
    try:
        return truth(expr, scope)
    except (SymbolicExtentError, DefinitionError, Unsupported):
        return False


def _unify(sides: tuple[int, int], same: dict[Dimension, int]) -> bool:
    """Make two extents equal by giving one open extent, or two, the values with which they are."""
    for solve in (_solved, _solved_in_steps):
        for one, other in (sides, sides[::-1]):
            for dimension in sorted(dimensions(one), key=lambda d: d.name):
                factor = terms_of(one).get((dimension,), 0)
                rest = one - factor * symbol(dimension)
                if not factor or dimension in same or dimension in dimensions(other) | dimensions(rest):
                    continue
                if solve(dimension, factor, other - rest, same):
                    return True
    return False


def _solved(dimension: Dimension, factor: int, product: int, same: dict[Dimension, int]) -> bool:
    """Give a dimension the value with which `factor` times it is a product, where that divides it."""
    if any(coefficient % factor for coefficient in terms_of(product).values()):
        return False
    _give(dimension, made_of({monomial: n // factor for monomial, n in terms_of(product).items()}), same)
    return True


def _solved_in_steps(dimension: Dimension, factor: int, product: int, same: dict[Dimension, int]) -> bool:
    """The same by giving another dimension of the product only values with which the factor divides it."""
    for other in sorted(dimensions(product), key=lambda d: d.name):
        steps = symbol(Dimension(f"{other.name}_in_steps", 2, HIGHEST))
        for first in range(min(abs(factor), _STEPS)) if other not in same else ():
            stepped = abs(factor) * steps + first
            if _solved(dimension, factor, _put(product, {other: stepped}), same):
                _give(other, stepped, same)
                return True
    return False


def _give(dimension: Dimension, value: int, same: dict[Dimension, int]) -> None:
    """Note the value of a dimension, also in the values of others, as these in it."""
    value = _put(value, same)
    for other, known in same.items():
        same[other] = _put(known, {dimension: value})
    same[dimension] = value


def _put(value: int, known: Mapping[Dimension, int]) -> int:
    put: int = at(value, {one.name: known.get(one, symbol(one)) for one in dimensions(value)})
    return put


def _single(value: int) -> tuple[Dimension, int] | None:
    """The open extent and the number of which a value is the product."""
    match list(terms_of(value).items()):
        case [((Dimension() as dimension,), factor)] if factor > 0:
            return dimension, factor
    return None


_CERTAIN = (
    "operands of",
    "its definition",
    "element is needed",
    "before the model runs",
    "used as an index",
    "no dtype",
    "has no value here",
    "is a list of tensors",
    "this index is a list",
)
"""What messages of definitions say that no other operand types or attributes can mend."""


def is_certain(failure: DefinitionError) -> bool:
    """Whether a definition fails at all operand types and attributes."""
    return any(clue in str(failure) for clue in _CERTAIN)


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
                ranks = _ranks_asked(self.operator, pattern.id) or RANKS
                rank = ranks[self.number % len(ranks)] if self.random.random() < 0.5 else self.random.choice(ranks)
                self.extents[pattern.id] = tuple(self._open(f"{pattern.id}_{axis}") for axis in range(rank))
        value = self.extents[pattern.id]
        return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()


def _ranks_asked(operator: s.Operator, name: str) -> tuple[int, ...]:
    """The numbers of axes that a requirement names of a list of extents, those at its border and one further."""
    wanted = s.Call(s.NOWHERE, "rank", (s.Name(s.NOWHERE, name),))
    found: list[int] = []
    for node in nodes(operator.requires):
        match node:
            case (
                s.Binary(operator="==" | "<" | "<=" | ">" | ">=", left=left, right=s.Number(value=int(number)))
                | s.Binary(operator="==" | "<" | "<=" | ">" | ">=", left=s.Number(value=int(number)), right=left)
            ) if left == wanted:
                found += [number, number + 1, number - 1]
            case _:
                pass
    return tuple(one for one in dict.fromkeys(found) if 0 <= one <= _MOST_AXES)
