"""Judges a rewrite: both sides are computed at generated instances and compared."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import facts_of
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import HARD, Search
from smartmem_rules.verification.instances.operands import (
    Range,
    draw_values,
    given_value,
    merging_choice,
    real_values,
    special_choice,
    special_values,
)
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import (
    ORDERED,
    Domain,
    PrimeField,
    Rationals,
    ReadsOutside,
    Undefined,
    Value,
)
from smartmem_rules.verification.semantics.evaluate import TooLarge
from smartmem_rules.verification.semantics.generic import Generic
from smartmem_rules.verification.semantics.terms import compute, functions_used, leaves, subterms
from smartmem_rules.verification.trials.comparison import Comparison, with_numbers
from smartmem_rules.verification.trials.outcome import Budget, Difference, Outcome
from smartmem_rules.verification.trials.special_values import at_special

VALUES_PER_CASE = (2, 4)
"""Draws of elements for one instance, and for one that was hard to find."""
ATTEMPTS_PER_TRIAL = 4
SLOW = (ORDERED | {"sqrt", "tanh", "sigmoid", "erf", "sin", "cos", "atan"}) - {"pow", "prod"}
"""Functions whose results have no more than a few times the exponent of their arguments."""
_NUMBERS = (2.0, 3.0, 5.0, 10.0, 100.0, -1.0, -2.0, -100.0)
_WRAPPING = 3
"""Further draws of integers for one instance."""
_INSIDE = (4, 3, 2)
"""Bounds of integers that are tried where greater ones read outside of a tensor."""
_WRAPPING_SHARE = 0.9
_INSTANCES = 24
"""Instances at which numbers that a solver found are tried."""


def directions(rule: ast.Rewrite) -> Iterator[tuple[ast.Pattern, ast.Pattern]]:
    """The directions in which a rule is applied."""
    yield rule.left, rule.right
    if rule.bidirectional:
        yield rule.right, rule.left


def test_rewrite(rule: ast.Rewrite, instances: Instances, seed: int, budget: Budget) -> Outcome:
    """Try a rewrite until it has enough trials, fails, or the time is over."""
    outcome = Outcome()
    sides = list(directions(rule))
    for place, (left, right) in enumerate(sides):
        _test_direction(rule, left, right, instances, seed + place, budget, budget.trials // len(sides) + 1, outcome)
        if outcome.failure is not None:
            break
    return outcome


def try_numbers(
    rule: ast.Rewrite, instances: Instances, seed: int, numbers: Mapping[str, Fraction]
) -> tuple[Case, Difference] | None:
    """Some instances with given elements of the operands; the first at which the sides differ."""
    for place, (left, right) in enumerate(directions(rule)):
        search = Search(rule, left, right, instances, seed + place)
        trial = Trial(rule, search)
        for case in itertools.islice(search.cases(_INSTANCES), _INSTANCES):
            difference = None if case is None else trial.at(case, numbers)
            if case is not None and difference is not None:
                return case, difference
    return None


def _test_direction(
    rule: ast.Rewrite,
    left: ast.Pattern,
    right: ast.Pattern,
    instances: Instances,
    seed: int,
    budget: Budget,
    trials: int,
    outcome: Outcome,
) -> None:
    search = Search(rule, left, right, instances, seed)
    search.empties = True
    trial = Trial(rule, search)
    wanted = outcome.trials + trials
    for case in search.cases(trials * ATTEMPTS_PER_TRIAL):
        if case is not None:
            outcome.cases += 1
            outcome.empty += case.is_empty
            before = outcome.trials
            outcome.failure = trial.run(case, outcome)
            wanted += outcome.trials - before if search.in_corners else 0
        if outcome.failure is not None or outcome.trials >= wanted:
            break
        if budget.spent:
            outcome.timed_out = True
            break
        hopeless = budget.hopeless * (3 if search.hints.literals else 1)
        if search.statistics.generated >= hopeless and outcome.cases == 0:
            break
    outcome.generated += search.statistics.generated
    outcome.satisfied += search.statistics.satisfied
    outcome.refused += search.statistics.refused


class Trial:
    """Compares both sides of instances of one rule."""

    def __init__(self, rule: ast.Rewrite, search: Search) -> None:
        self.comparison = Comparison(tuple(search.hints.near), frozenset(rule.relaxes))
        self.search = search
        self.facts = list(facts_of(rule))
        self.random = random.Random(search.random.random())
        self.ranges: dict[tuple[str, ...], Range] = {}

    def run(self, case: Case, outcome: Outcome) -> tuple[Case, Difference] | None:
        """Some draws of values for one instance, or for one with another number; where the sides differ."""
        assert case.right is not None
        domains = self.comparison.domains(case)
        drawn, before = self.drawn(case), outcome.trials
        if drawn.converted:
            domains = [*domains, Domain()]
        hard = self.search.steps > HARD * max(1, self.search.statistics.satisfied)
        for number in range(1 if self.search.in_corners else VALUES_PER_CASE[hard]):
            domain = domains[(outcome.cases + number) % len(domains)]
            try:
                difference = self._compared(case, domain, drawn, outcome)
            except TooLarge:
                return None
            if difference is not None:
                return case, difference
        if drawn.wraps:
            found = self._wrapping(case, drawn)
            if found is not None:
                return found
        if any(leaf.type.dtype in FLOATS for leaf in leaves(case.left).values()):
            decided, seen = outcome.trials > before, outcome.special
            difference = self.special(case, outcome)
            if difference is not None:
                return case, difference
            if not decided and outcome.special > seen:
                outcome.trials += 1  # bits of floats are known in single precision only
        if outcome.cases % 8 == 1:
            self._measure_rounding(case, outcome)
        return None

    def _compared(self, case: Case, domain: Domain, drawn: Range, outcome: Outcome) -> Difference | None:
        """One draw of values; where the domain cannot decide it, the next one that can."""
        choices: list[Domain] = [domain]
        if isinstance(domain, Rationals | PrimeField):
            choices.append(Bounded(self.comparison.near))  # a root or a power has no exact value
        if not self.comparison.near and type(domain) is not Domain and case.left.type.dtype not in FLOATS:
            choices.append(Generic())
        for one in choices:
            try:
                difference = self._inside(case, one, drawn)
            except (Undefined, ZeroDivisionError):
                continue
            outcome.domains.add(one.name)
            outcome.trials += 1
            return difference
        return None

    def _inside(self, case: Case, domain: Domain, drawn: Range) -> Difference | None:
        """One draw of values; where they read outside of a tensor, others of ever smaller integers."""
        for inside in (drawn.inside, *_INSIDE):
            try:
                return self._difference(case, domain, replace(drawn, inside=inside))
            except ReadsOutside:
                continue
        return self._difference(case, domain, replace(drawn, inside=1))

    def _difference(self, case: Case, domain: Domain, drawn: Range) -> Difference | None:
        difference = self.comparison.compare(case, domain, draw_values(case, domain, self.random, drawn))
        if difference is None or not isinstance(domain, Generic):
            return difference
        # elements that lie close together by chance do not do so again
        again = self.comparison.compare(case, domain, draw_values(case, domain, self.random, drawn))
        return None if again is None else difference

    def _wrapping(self, case: Case, drawn: Range) -> tuple[Case, Difference] | None:
        """Some more draws of integers, at which arithmetic wraps in most of them, also beside other constants."""
        drawn = replace(drawn, extreme_share=_WRAPPING_SHARE)
        for one in (case, *self._with_other_numbers(case)):
            for _ in range(_WRAPPING):
                try:
                    tensors = draw_values(one, Domain(), self.random, drawn)
                    difference = self.comparison.compare(one, Domain(), tensors)
                except (Undefined, ZeroDivisionError, TooLarge):
                    break
                if difference is not None:
                    return one, difference
        return None

    def _with_other_numbers(self, case: Case) -> Iterator[Case]:
        """The instance with another number in a constant, if the guards admit it."""
        slots = sorted(slot for slot in case.choices if slot.startswith("uniform:"))
        if slots:
            slot = self.random.choice(slots)
            other = self.search.build({**case.choices, slot: self.random.choice(_NUMBERS)})
            if other is not None and other.satisfied and other.right is not None and _types(other) == _types(case):
                yield other

    def at(self, case: Case, numbers: Mapping[str, Fraction]) -> Difference | None:
        """What both sides are where all elements of each operand are one number."""
        found = next(filter(None, (self._at(case, numbers, domain) for domain in self.comparison.domains(case))), None)
        if case.left.type.dtype in FLOATS and found is None:
            return None  # floats are rounded in plain numpy, which is no difference of the sides
        return self._at(case, numbers, Domain()) or found

    def _at(self, case: Case, numbers: Mapping[str, Fraction], domain: Domain) -> Difference | None:
        tensors: dict[str, Value] = {}
        for name, leaf in leaves(case.left).items():
            known = given_value(case, leaf, domain)
            if known is not None:
                tensors[name] = known
                continue
            number, dtype = numbers.get(name, Fraction(1)), leaf.type.dtype
            if dtype in FLOATS and isinstance(domain, Rationals):
                value = domain.constant(number, dtype)  # as the solver found it: no float is a third
            else:
                plain = float(number) if dtype in FLOATS else bool(number) if dtype == "bool" else int(number)
                value = domain.constant(plain, dtype)
            tensors[name] = tuple(np.broadcast_to(v, leaf.type.shape) for v in value)
        try:
            return self.comparison.compare(case, domain, tensors)
        except (Undefined, ZeroDivisionError, TooLarge, OverflowError, ValueError):
            return None

    def drawn(self, case: Case) -> Range:
        """What the elements of an instance are drawn from."""
        assert case.right is not None
        used = functions_used(case.left) | functions_used(case.right)
        types = {t.type.dtype for side in (case.left, case.right) for t in subterms(side)}
        whole = not {leaf.type.dtype for leaf in leaves(case.left).values()} & set(FLOATS)
        converted = whole and bool(types & set(FLOATS)) and case.left.type.dtype not in FLOATS
        integers = whole and types - {"bool"} != set() and not types & set(FLOATS)
        counted = not whole and bool(types - {"bool"} - set(FLOATS))
        key = (*sorted(used), case.left.type.dtype, str(converted), str(integers), str(counted))
        if case.is_empty and not integers:
            return Range()
        if key not in self.ranges:
            exact = converted and "reassociation" not in self.comparison.relaxes
            literals = tuple(self.search.hints.literals)
            self.ranges[key] = Range(literals, used <= SLOW, exact, to_integers=counted, wraps=integers)
        return self.ranges[key]

    def special(self, case: Case, outcome: Outcome) -> Difference | None:
        """Signed zeros, infinities, NaN and denormals in plain float32, unless the rule excludes them."""
        if "reassociation" in self.comparison.relaxes:
            tensors = real_values(case, Bounded(self.comparison.near), self.random, self.drawn(case))
        else:
            relaxes = self.comparison.relaxes
            merging = [] if case.left.type.dtype in FLOATS else merging_choice(relaxes)
            tensors = special_values(
                case, special_choice(relaxes, self.drawn(case).to_integers), self.random, self.facts, merging
            )
        return at_special(self.comparison, case, tensors, outcome)

    def _measure_rounding(self, case: Case, outcome: Outcome) -> None:
        assert case.right is not None
        if case.left.type.dtype not in FLOATS:
            return
        domain = Domain()
        try:
            tensors = draw_values(case, domain, self.random)
            left = compute(case.left, tensors, domain)[0]
            right = compute(case.right, with_numbers(case, tensors, domain), domain)[0]
        except (Undefined, ValueError, OverflowError, IndexError, TooLarge):
            return
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.where(np.isfinite(left), np.abs(left), 0.0), initial=0.0)
            both = np.isfinite(left) & np.isfinite(right)
            apart = np.max(np.where(both, np.abs(left.astype(np.float64) - right), 0.0), initial=0.0)
        if scale > 0 and np.any(both):
            outcome.rounding = max(outcome.rounding or 0.0, float(apart / scale))


def _types(case: Case) -> dict[str, TensorType]:
    return {name: leaf.type for name, leaf in leaves(case.left).items()}
