"""All ways through a computation over unknown numbers: each choice and each comparison that is open is taken both ways.

What is run is ordinary code over open extents. Where it chooses (`choose`) or compares what is not known, the way so
far is kept and run again with each answer, so that in the end every instance has been seen by one of the ways. An
equation that names an unknown is carried out by putting its other side in the unknown's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from smartmem_rules.analysis.index_formulas import REAL, IndexFormulas
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import Dimension, dimensions, is_symbolic, symbol
from smartmem_rules.tensor.ranges import DIVIDES, answering, bounds
from smartmem_rules.verification.proof.equations import HIGHEST, product_of, replaced, solved

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


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What facts say: values of unknowns, their least values, and the facts that are neither.

    `low` is part of the unknowns themselves, and makes divisors positive; `least` only answers comparisons.
    """

    facts: tuple[Fact, ...] = ()
    values: Mapping[str, int] = field(default_factory=dict)
    low: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    open: tuple[Fact, ...] = ()
    names: Mapping[str, int] = field(default_factory=dict)
    """The unknowns in the order in which they came up."""


@dataclass(frozen=True)
class _Start:
    """Where a way begins: choices that were made, what was known there, and one fact more."""

    choices: tuple[int, ...] = ()
    known: _Known = _Known()
    fact: Fact | None = None


class Path:
    """One way; it answers comparisons from its facts, and forks where they say nothing."""

    def __init__(self, start: _Start, z3: Any) -> None:
        self._z3 = z3
        self.start = start
        self.made: list[int] = []
        self.others: list[_Start] = []
        self.facts = start.known.facts
        self._values = dict(start.known.values)
        self._low = dict(start.known.low)
        self._least = dict(start.known.least)
        self._names = dict(start.known.names)
        self.open = list(start.known.open)
        """The facts that are not carried out by values and ranges of unknowns."""
        self.asked: list[tuple[Any, str, Any, bool]] = []
        """The comparisons that were not decided by ranges, and how they were answered."""
        if start.fact is not None:
            self._assume(start.fact)

    @property
    def _known(self) -> _Known:
        return _Known(
            facts=self.facts,
            values=dict(self._values),
            low=dict(self._low),
            least=dict(self._least),
            open=tuple(self.open),
            names=dict(self._names),
        )

    def choose(self, count: int) -> int:
        """One of 0 to count - 1; all of them are tried in the end."""
        place = len(self.made)
        if place < len(self.start.choices):
            self.made.append(self.start.choices[place])
            return self.made[-1]
        before = tuple(self.made)
        known = self._known
        self.others += [_Start((*before, other), known) for other in range(count - 1, 0, -1)]
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
        self._names.setdefault(name, len(self._names))
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
        found = self._answer(left, operator, right)
        self.asked.append((left, operator, right, found))
        return found

    def _answer(self, left: Any, operator: str, right: Any) -> bool:
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
        yes = Fact(left, operator, right)
        if given:
            raise _Fork(yes, is_given=True)
        no = Fact(left, _NEGATED[operator], right)
        for fact, other in ((no, yes), (yes, no)):
            if self._changes_nothing(fact):
                # what was computed so far stays as it is: this way goes on, and only the other one begins anew
                self.others.append(_Start(tuple(self.made), self._known, other))
                self._keep(fact)
                return fact is yes
        raise _Fork(yes)

    def _changes_nothing(self, fact: Fact) -> bool:
        """Whether a fact leaves all unknowns as they are: it gives none a value, and no divisor its sign."""
        raised = _raised(fact)
        return fact.operator in ("!=", "<", ">") and (raised is None or raised[0].low >= 1)

    def _signs(self, difference: int) -> frozenset[int]:
        """The signs that the ranges of the unknowns and the facts leave to a difference."""
        least = {d: symbol(Dimension(d.name, self._least[d.name], d.high)) for d in dimensions(difference)
                 if self._least.get(d.name, d.low) > d.low}  # fmt: skip
        low, high = bounds(replaced(difference, least))
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
        self._keep(fact)
        if fact.operator == "==" or self._signs(left - right) == _SIGNS["=="]:
            self._raise_factor(left, right)
            self._raise_factor(right, left)
            values = solved(left, right, self._names)
            for name, value in values:
                self._put(name, self.settled(value), left, right)
            if not values and fact.operator == "==":
                self.open.append(fact)
        self.open = [Fact(self.settled(f.left), f.operator, self.settled(f.right)) for f in self.open]

    def _keep(self, fact: Fact) -> None:
        """Note a fact of settled values; equations are carried out elsewhere."""
        self.facts = (*self.facts, fact)
        raised = _raised(fact)
        if raised is not None:
            dimension, least = raised
            known = self._low if dimension.low < 1 else self._least
            known[dimension.name] = max(least, known.get(dimension.name, least))
        elif fact.operator != "==":
            self.open.append(fact)

    def _put(self, name: str, value: int, *sides: int) -> None:
        """Let an unknown be a value; an unknown that it is gets the larger of both least values."""
        if any(d.name == name for d in dimensions(value)):
            return
        self._values[name] = value
        own = max((d.low for side in sides for d in dimensions(side) if d.name == name), default=-HIGHEST)
        least = self._least.get(name, own)
        for dimension in dimensions(value):
            if value == symbol(dimension):
                if own > dimension.low:
                    self._low[dimension.name] = own
                if least > self._least.get(dimension.name, dimension.low):
                    self._least[dimension.name] = least

    def _raise_factor(self, product: int, positive: int) -> None:
        """A factor beside positive ones in a product that is positive is positive."""
        factors, surely = product_of(product), product_of(positive)
        if factors is None or surely is None or any(f.low < 1 for f in surely):
            return
        doubtful = [f for f in factors if f.low < 1]
        if len(doubtful) == 1 and not doubtful[0].name.startswith(REAL):
            self._low[doubtful[0].name] = 1


def _raised(fact: Fact) -> tuple[Dimension, int] | None:
    """The unknown that a fact gives another least value, where it says no more than that."""
    found = dimensions(fact.left)
    if is_symbolic(fact.right) or len(found) != 1 or fact.operator not in ("!=", ">"):
        return None
    (dimension,) = found
    if fact.left != symbol(dimension) or dimension.name.startswith(REAL) or fact.right < dimension.low:
        return None
    if fact.operator == "!=" and fact.right != dimension.low:
        return None
    return dimension, fact.right + 1


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
            made, known = tuple(path.made), path._known
            no = Fact(fact.left, _NEGATED[fact.operator], fact.right)
            waiting += [] if fork.is_given else [_Start(made, known, no)]
            waiting.append(_Start(made, known, fact))
            waiting += path.others
            continue
        waiting += path.others
        yield path
