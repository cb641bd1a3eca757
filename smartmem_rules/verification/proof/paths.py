"""All ways through a computation over unknown numbers: each choice and each comparison that is open is taken both ways.

What is run is ordinary code over open extents. Where it chooses (`choose`) or compares what is not known, the way so
far is kept and run again with each answer, so that in the end every instance has been seen by one of the ways. An
equation that names an unknown is carried out by putting its other side in the unknown's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from smartmem_rules.analysis.index_formulas import REAL, IndexFormulas
from smartmem_rules.tensor.extents import (
    Dimension,
    Extent,
    Quotient,
    dimensions,
    is_symbolic,
    made_of,
    symbol,
    terms_of,
)
from smartmem_rules.tensor.ranges import DIVIDES, answering, bounds

HIGHEST = 1 << 62
_RESOURCES = 60_000
_SIGNS = {
    "==": frozenset((0,)), "!=": frozenset((-1, 1)), "<": frozenset((-1,)), "<=": frozenset((-1, 0)),
    ">": frozenset((1,)), ">=": frozenset((0, 1)),
}  # fmt: skip
"""The signs of a difference with which a comparison holds."""
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}


class TooManyWays(Exception):
    """There are more ways than are looked at."""


class _Fork(BaseException):
    """A comparison is open; no definition may take it for a failure of its own."""

    def __init__(self, fact: Fact, is_given: bool = False) -> None:
        self.fact = fact
        self.is_given = is_given


@dataclass(frozen=True)
class Fact:
    """`left OPERATOR right` holds."""

    left: int
    operator: str
    right: int


@dataclass(frozen=True)
class _Start:
    """Where a way begins: choices that were made, and facts that are taken to hold."""

    choices: tuple[int, ...] = ()
    facts: tuple[Fact, ...] = ()


class Path:
    """One way; it answers comparisons from its facts, and forks where they say nothing."""

    def __init__(self, start: _Start, z3: Any) -> None:
        self._z3 = z3
        self.start = start
        self.made: list[int] = []
        self.others: list[_Start] = []
        self.facts = start.facts
        self._values: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self.open: list[Fact] = []
        """The facts that are not carried out by values and ranges of unknowns."""
        self.asked = 0
        """How many comparisons were not decided by ranges."""
        for fact in start.facts:
            self._assume(fact)

    def choose(self, count: int) -> int:
        """One of 0 to count - 1; all of them are tried in the end."""
        place = len(self.made)
        if place < len(self.start.choices):
            self.made.append(self.start.choices[place])
            return self.made[-1]
        before = tuple(self.made)
        self.others += [_Start((*before, other), self.facts) for other in range(count - 1, 0, -1)]
        self.made.append(0)
        return 0

    def extent(self, name: str) -> int:
        """An unknown number of 1 and more."""
        return self._unknown(name, 1)

    def integer(self, name: str) -> int:
        """An unknown integer."""
        return self._unknown(name, -HIGHEST)

    def real(self, name: str) -> int:
        """An unknown real number; it takes part in arithmetic as an integer does."""
        return self._unknown(REAL + name, -HIGHEST)

    def _unknown(self, name: str, low: int) -> int:
        return self.settled(symbol(Dimension(name, self._low.get(name, low), HIGHEST)))

    def settled(self, value: int) -> int:
        """A value with what is known of its unknowns put in their places."""
        while True:
            known = {d for d in dimensions(value) if d.name in self._values}
            raised = {d for d in dimensions(value) if self._low.get(d.name, d.low) > d.low} - known
            if not known and not raised:
                return value
            new = {d: self._values[d.name] for d in known}
            new |= {d: symbol(Dimension(d.name, self._low[d.name], d.high)) for d in raised}
            value = replaced(value, new)

    def answer(self, left: Any, operator: str, right: Any) -> bool:
        """Whether a comparison holds on this way. Forks where that is open."""
        self.asked += 1
        left, right = self.settled(left), self.settled(right)
        if operator == "==" and left == right:
            return True
        given = operator == DIVIDES  # the language divides by positive numbers only
        operator = ">" if given else operator
        known = self._signs(left - right)
        wanted = _SIGNS[operator]
        if known <= wanted:
            return True
        if not known & wanted:
            return False
        raise _Fork(Fact(left, operator, right), given)

    def _signs(self, difference: int) -> frozenset[int]:
        """The signs that the ranges of the unknowns and the facts leave to a difference."""
        low, high = bounds(difference)
        signs = frozenset(sign for sign, may in ((-1, low < 0), (0, low <= 0 <= high), (1, high > 0)) if may)
        for fact in self.open:
            other = fact.left - fact.right
            if other == difference:
                signs &= _SIGNS[fact.operator]
            elif other == -difference:
                signs &= frozenset(-sign for sign in _SIGNS[fact.operator])
        return signs

    @property
    def is_possible(self) -> bool:
        """Whether the facts do not contradict each other, as far as a solver sees."""
        solver, formulas = self._z3.Solver(), IndexFormulas(self._z3)
        solver.set("rlimit", _RESOURCES)
        solver.add(*self._formulas(formulas))
        solver.add(*formulas.facts)
        return bool(solver.check() != self._z3.unsat)

    def formulas(self, formulas: IndexFormulas) -> list[Any]:
        """What is known on this way, and what stands for unknowns that were solved for."""
        by_name = {d.name: symbol(d) for f in self.facts for side in (f.left, f.right) for d in dimensions(side)}
        solved_for = [(by_name[name], value) for name, value in self._values.items() if name in by_name]
        return self._formulas(formulas) + [formulas.extent(a) == formulas.extent(b) for a, b in solved_for]

    def _formulas(self, formulas: IndexFormulas) -> list[Any]:
        found = []
        for known in self.facts:
            a, b = formulas.extent(known.left), formulas.extent(known.right)
            made = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
            found.append(made[known.operator])
        return found

    def _assume(self, fact: Fact) -> None:
        left, right = self.settled(fact.left), self.settled(fact.right)
        fact = Fact(left, fact.operator, right)
        if fact.operator != "==" and not self._raise_bound(fact):
            self.open.append(fact)
        if fact.operator == "==" or self._signs(left - right) == _SIGNS["=="]:
            self._raise_factor(left, right)
            self._raise_factor(right, left)
            for name, value in solved(left, right):
                self._put(name, self.settled(value), left, right)
        self.open = [Fact(self.settled(f.left), f.operator, self.settled(f.right)) for f in self.open]

    def _put(self, name: str, value: int, *sides: int) -> None:
        """Let an unknown be a value; an unknown that it is gets the larger of both least values."""
        if any(d.name == name for d in dimensions(value)):
            return
        self._values[name] = value
        own = max((d.low for side in sides for d in dimensions(side) if d.name == name), default=-HIGHEST)
        for dimension in dimensions(value):
            if value == symbol(dimension) and own > dimension.low:
                self._low[dimension.name] = own

    def _raise_factor(self, product: int, positive: int) -> None:
        """A factor beside positive ones in a product that is positive is positive."""
        factors, surely = _product_of(product), _product_of(positive)
        if factors is None or surely is None or any(f.low < 1 for f in surely):
            return
        doubtful = [f for f in factors if f.low < 1]
        if len(doubtful) == 1 and not doubtful[0].name.startswith(REAL):
            self._low[doubtful[0].name] = 1

    def _raise_bound(self, fact: Fact) -> bool:
        """Whether a fact says no more than that an unknown is larger than its least value, which is then raised."""
        found = dimensions(fact.left)
        if is_symbolic(fact.right) or len(found) != 1 or fact.operator not in ("!=", ">"):
            return False
        (dimension,) = found
        if fact.left != symbol(dimension) or dimension.name.startswith(REAL) or fact.right < dimension.low:
            return False
        if fact.operator == "!=" and fact.right != dimension.low:
            return False
        self._low[dimension.name] = fact.right + 1
        return True


def ways(run: Callable[[Path], None], z3: Any, most: int) -> Iterator[Path]:
    """Run something along all ways; each that came to its end.

    Raises:
        TooManyWays: there are more than `most` runs.
    """
    waiting = [_Start()]
    count = 0
    while waiting:
        count += 1
        if count > most:
            raise TooManyWays
        path = Path(waiting.pop(), z3)
        try:
            with answering(path.answer):
                run(path)
        except _Fork as fork:
            fact = fork.fact
            made = tuple(path.made)
            no = Fact(fact.left, _NEGATED[fact.operator], fact.right)
            waiting += [] if fork.is_given else [_Start(made, (*path.facts, no))]
            waiting.append(_Start(made, (*path.facts, fact)))
            waiting += path.others
            continue
        waiting += path.others
        yield path


def replaced(value: int, new: dict[Dimension, int]) -> int:
    """A polynomial with some of its dimensions replaced."""
    if not is_symbolic(value) or not dimensions(value) & new.keys():
        return value
    total: int = 0
    for monomial, coefficient in terms_of(value).items():
        product: int = coefficient
        for factor in monomial:
            if isinstance(factor, Quotient):
                product = product * (replaced(factor.value, new) // replaced(factor.divisor, new))
            else:
                product = product * new.get(factor, Extent((((factor,), 1),)))
        total = total + product
    return total


def solved(left: int, right: int) -> list[tuple[str, int]]:
    """Values of unknowns that follow from an equation; none where it is not seen through."""
    difference = left - right
    if not is_symbolic(difference):
        return []
    terms = dict(terms_of(difference))
    common = set.intersection(*({f for f in m if isinstance(f, Dimension) and f.low > 0} for m in terms))
    for factor in common:
        while all(factor in m for m in terms):
            terms = {_without(m, factor): c for m, c in terms.items()}
    ones = _all_ones(terms)
    if ones:
        return ones
    multiple = _multiple(terms)
    if multiple is not None:
        return [multiple]
    difference = made_of(terms)
    for monomial, coefficient in sorted(terms.items(), key=lambda item: repr(item[0]), reverse=True):
        dimension = monomial[0] if len(monomial) == 1 else None
        if isinstance(dimension, Dimension) and abs(coefficient) == 1:
            rest = difference - coefficient * symbol(dimension)
            if dimension not in dimensions(rest):
                return [(dimension.name, -coefficient * rest)]
    return []


def _product_of(value: int) -> list[Dimension] | None:
    """The factors of a product of unknowns with a positive number; None for what is none."""
    if not is_symbolic(value):
        return [] if value > 0 else None
    terms = terms_of(value)
    ((monomial, coefficient), *more) = terms.items()
    found = [factor for factor in monomial if isinstance(factor, Dimension)]
    return None if more or coefficient < 0 or len(found) < len(monomial) else found


def _without(monomial: tuple[Any, ...], factor: Dimension) -> tuple[Any, ...]:
    left = list(monomial)
    left.remove(factor)
    return tuple(left)


def _all_ones(terms: dict[Any, int]) -> list[tuple[str, int]]:
    """A product of numbers of 1 and more is 1: each of them is."""
    if len(terms) == 2 and () in terms:
        (monomial,) = (m for m in terms if m)
        positive = all(isinstance(f, Dimension) and f.low >= 1 for f in monomial)
        if len(monomial) > 1 and positive and terms[monomial] == -terms[()]:
            return [(f.name, 1) for f in monomial]
    return []


def _multiple(terms: dict[Any, int]) -> tuple[str, int] | None:
    """n = d * (n // d): n is a multiple of d."""
    if len(terms) != 2:
        return None
    for monomial in terms:
        for factor in monomial:
            if not isinstance(factor, Quotient) or not is_symbolic(factor.value):
                continue
            value = factor.value
            made = factor.divisor * made_of({(factor,): 1})
            difference = value - made
            if terms in (dict(terms_of(difference)), dict(terms_of(-difference))):
                (dimension, *more) = dimensions(value)
                if not more and value == symbol(dimension) and dimension not in dimensions(factor.divisor):
                    times = symbol(Dimension(f"{dimension.name} by {factor.divisor!r}", 1, HIGHEST))
                    return dimension.name, factor.divisor * times
    return None
