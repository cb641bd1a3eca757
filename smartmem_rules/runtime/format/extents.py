"""Extents as the index of a plan holds them: numbers, and formulas in a list to which negative numbers point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError
from smartmem_rules.tensor.extents import Dimension, Extent, Extreme, Factor, Monomial, Quotient, is_symbolic

_PAIRS = {"min": pb.LEAST, "max": pb.GREATEST}


class FormulaWriter:
    """Collects formulas, those on which others depend before these."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self._numbers = {dimension.name: number for number, dimension in enumerate(dimensions)}
        self._known: dict[object, int] = {}
        self.formulas: list[pb.Formula] = []

    def extents(self, shape: Iterable[int]) -> list[int]:
        """The extents of a shape."""
        return [self.extent(extent) for extent in shape]

    def extent(self, value: int) -> int:
        """An extent: itself, or ~formula."""
        if not is_symbolic(value) and int(value) >= 0:
            return int(value)
        if value not in self._known:
            formula = self._formula(value)
            self.formulas.append(formula)
            self._known[value] = ~(len(self.formulas) - 1)
        return self._known[value]

    def _formula(self, value: int) -> pb.Formula:
        if not is_symbolic(value):
            return pb.Formula(terms=[pb.Term(coefficient=int(value))])
        terms: tuple[tuple[Monomial, int], ...] = value.terms  # type: ignore[attr-defined]
        return pb.Formula(
            terms=[
                pb.Term(coefficient=coefficient, factors=[self._factor(one) for one in monomial])
                for monomial, coefficient in terms
            ]
        )

    def _factor(self, factor: Factor) -> pb.Factor:
        match factor:
            case Dimension(name=name):
                return pb.Factor(dimension=self._numbers[name])
            case Quotient(value=value, divisor=divisor):
                return pb.Factor(dividend=self.extent(value), divisor=self.extent(divisor))
            case Extreme(kind=kind, left=left, right=right):
                pair = _PAIRS[kind]
                return pb.Factor(dividend=self.extent(left), divisor=self.extent(right), pair=pair)


class FormulaReader:
    """The extents of a plan's index."""

    def __init__(self, formulas: Iterable[pb.Formula], dimensions: Sequence[Dimension]) -> None:
        """Raises:
        DamageError: a formula points to one that does not stand before it, or to no dimension.
        """
        self._dimensions = dimensions
        self._found: list[int] = []
        for formula in formulas:
            self._found.append(self._extent(formula))

    def shape(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The extents of a shape.

        Raises:
            DamageError: a number points to no formula.
        """
        return tuple(map(self.extent, numbers))

    def extent(self, number: int) -> int:
        """The extent that a number stands for."""
        if number >= 0:
            return number
        if ~number >= len(self._found):
            raise DamageError(f"there is no formula {~number}")
        return self._found[~number]

    def _extent(self, formula: pb.Formula) -> int:
        terms = tuple((tuple(map(self._factor, term.factors)), term.coefficient) for term in formula.terms)
        if len(terms) == 1 and not terms[0][0]:
            return int(terms[0][1])
        return Extent(terms)

    def _factor(self, factor: pb.Factor) -> Factor:
        if not factor.HasField("dimension"):
            left, right = self.extent(factor.dividend), self.extent(factor.divisor)
            if factor.pair != pb.QUOTIENT:
                kinds = [kind for kind, pair in _PAIRS.items() if pair == factor.pair]
                if not kinds:
                    raise DamageError(f"a formula has factors of the unknown kind {factor.pair}")
                return Extreme(kinds[0], left, right)
            if factor.divisor == 0:
                raise DamageError("a formula divides by zero")
            return Quotient(left, right)
        if factor.dimension >= len(self._dimensions):
            raise DamageError(f"there is no dimension {factor.dimension}")
        return self._dimensions[factor.dimension]


def numbered(names: Iterable[str]) -> Mapping[str, int]:
    """The place of each name."""
    return {name: number for number, name in enumerate(names)}
