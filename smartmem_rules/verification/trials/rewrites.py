"""Judges a rewrite: both sides are computed at generated instances and compared."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.expr import Apply, walk
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import HARD, Search
from smartmem_rules.verification.instances.operands import (
    Range,
    draw_values,
    given_value,
    real_values,
    special_choice,
    special_values,
)
from smartmem_rules.verification.semantics.domains import (
    FIELD,
    ORDERED,
    Array,
    Bounded,
    Domain,
    PrimeField,
    Rationals,
    Undefined,
    Value,
)
from smartmem_rules.verification.semantics.evaluate import TooLarge
from smartmem_rules.verification.semantics.terms import Application, Term, compute, functions_used, leaves, subterms

TRIALS = 200
VALUES_PER_CASE = (2, 4)
"""Draws of elements for one instance, and for one that was hard to find."""
ATTEMPTS_PER_TRIAL = 4
SAFETY = 4.0
"""By how much a difference may exceed the error bounds, which are of first order."""
ROUNDED_ONCE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "recip",
        "neg",
        "abs",
        "min",
        "max",
        "sqrt",
        "select",
        "cast",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and",
        "or",
        "not",
    ]
)
"""Primitives of which every device gives the float nearest to the exact value."""
SLOW = (ORDERED | {"sqrt", "tanh", "sigmoid", "erf", "sin", "cos", "atan"}) - {"pow", "prod"}
"""Functions whose results have no more than a few times the exponent of their arguments."""
_INSTANCES = 24
"""Instances at which numbers that a solver found are tried."""
FLOOR = 20
"""Fewer satisfied trials than this make a rule vacuous."""


@dataclass
class Budget:
    """How long and how often a rule is tried. Time is the processor's, so that a busy machine changes no verdict."""

    trials: int = TRIALS
    seconds: float = 10.0
    hopeless: int = 120
    """Instances without a satisfied one after which a rule is given up."""
    started: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return time.process_time() - self.started > self.seconds


@dataclass(frozen=True)
class Difference:
    """One element that differs."""

    place: tuple[int, ...]
    left: object
    right: object
    domain: str
    tensors: Mapping[str, Array]
    left_values: Array
    right_values: Array


@dataclass
class Outcome:
    """What the trials of a rule gave."""

    trials: int = 0
    cases: int = 0
    generated: int = 0
    satisfied: int = 0
    refused: int = 0
    undefined: int = 0
    special: int = 0
    too_large: int = 0
    domains: set[str] = field(default_factory=set)
    rounding: float | None = None
    failure: tuple[Case, Difference] | None = None
    timed_out: bool = False

    @property
    def share(self) -> float:
        """Satisfied of generated instances."""
        return self.satisfied / self.generated if self.generated else 0.0


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
    trial = Trial(rule, search)
    wanted = outcome.trials + trials
    for case in search.cases(trials * ATTEMPTS_PER_TRIAL):
        if case is not None:
            outcome.cases += 1
            difference = trial.run(case, outcome)
            if difference is not None:
                outcome.failure = case, difference
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
        self.rule = rule
        self.near = tuple(search.hints.near)
        self.search = search
        self.random = random.Random(search.random.random())
        self.relaxes = set(rule.relaxes)
        self.ranges: dict[tuple[str, ...], Range] = {}

    def run(self, case: Case, outcome: Outcome) -> Difference | None:
        """Some draws of values for one instance."""
        assert case.right is not None
        domains = self.domains(case)
        drawn = self.drawn(case)
        if drawn.converted:
            domains = [*domains, Domain()]
        hard = self.search.steps > HARD * max(1, self.search.statistics.satisfied)
        for number in range(VALUES_PER_CASE[hard]):
            domain = domains[(outcome.cases + number) % len(domains)]
            try:
                tensors = draw_values(case, domain, self.random, drawn)
                difference = self.compare(case, domain, tensors)
            except (Undefined, ZeroDivisionError):
                outcome.undefined += 1
                if isinstance(domain, Bounded):
                    continue
                # a root or a power has no exact value: double precision has one
                domain = Bounded(self.near)
                try:
                    tensors = draw_values(case, domain, self.random, drawn)
                    difference = self.compare(case, domain, tensors)
                except (Undefined, ZeroDivisionError):
                    continue
            except TooLarge:
                outcome.too_large += 1
                return None
            outcome.domains.add(domain.name)
            outcome.trials += 1
            if difference is not None:
                return difference
        if any(leaf.type.dtype in FLOATS for leaf in leaves(case.left).values()):
            difference = self.special(case, outcome)
            if difference is not None:
                return difference
        if outcome.cases % 8 == 1:
            self._measure_rounding(case, outcome)
        return None

    def at(self, case: Case, numbers: Mapping[str, Fraction]) -> Difference | None:
        """What both sides are where all elements of each operand are one number."""
        found = next(filter(None, (self._at(case, numbers, domain) for domain in self.domains(case))), None)
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
            return self.compare(case, domain, tensors)
        except (Undefined, ZeroDivisionError, TooLarge, OverflowError, ValueError):
            return None

    def drawn(self, case: Case) -> Range:
        """What the elements of an instance are drawn from."""
        assert case.right is not None
        used = functions_used(case.left) | functions_used(case.right)
        types = {t.type.dtype for side in (case.left, case.right) for t in subterms(side)}
        whole = not {leaf.type.dtype for leaf in leaves(case.left).values()} & set(FLOATS)
        converted = whole and bool(types & set(FLOATS)) and case.left.type.dtype not in FLOATS
        key = (*sorted(used), case.left.type.dtype, str(converted))
        if key not in self.ranges:
            exact = converted and "reassociation" not in self.relaxes
            self.ranges[key] = Range(tuple(self.search.hints.literals), used <= SLOW, exact)
        return self.ranges[key]

    def domains(self, case: Case) -> list[Domain]:
        """The arithmetics in which an instance is compared, exact ones where its operations allow."""
        assert case.right is not None
        types = {t.type.dtype for side in (case.left, case.right) for t in subterms(side)}
        if not types & set(FLOATS):
            return [Domain()]
        used = functions_used(case.left) | functions_used(case.right)
        infinite = any(not np.isfinite(array).all() for array in case.elements.values() if array.dtype.kind == "f")
        if self.near or infinite or _inexact(case):
            return [Bounded(self.near)]
        if used <= FIELD and types <= set(FLOATS):
            return [PrimeField(), PrimeField(), PrimeField(), Rationals()]
        if used <= ORDERED:
            return [Rationals()]
        return [Bounded(self.near)]

    def compare(self, case: Case, domain: Domain, tensors: Mapping[str, Value]) -> Difference | None:
        """The first element at which both sides differ more than the domain allows."""
        assert case.right is not None
        shape = case.left.type.shape
        try:
            left = compute(case.left, tensors, domain)
        except IndexError as error:
            raise Undefined("the left side reads outside of an operand") from error
        try:
            right = compute(case.right, _with_numbers(case, tensors, domain), domain)
        except IndexError as error:
            shown, first = {n: v[0] for n, v in tensors.items()}, np.broadcast_to(left[0], shape)
            nothing = np.full(shape, np.nan)
            return Difference(
                (0,) * len(shape), first.flat[0], f"undefined ({error})", domain.name, shown, first, nothing
            )
        wrong = self._wrong(left, right, domain, case.left.type.dtype)
        wrong = np.broadcast_to(wrong, shape)
        if not np.any(wrong):
            return None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        first, second = np.broadcast_to(left[0], shape), np.broadcast_to(right[0], shape)
        shown = {name: value[0] for name, value in tensors.items()}
        return Difference(place, first[place], second[place], domain.name, shown, first, second)

    def _wrong(self, left: Value, right: Value, domain: Domain, dtype: str) -> Array:
        a, b = left[0], right[0]
        if not isinstance(domain, Bounded):
            return np.asarray(a != b, bool)
        with np.errstate(all="ignore"):
            errors = sum(np.nan_to_num(v[1], nan=np.inf) for v in (left, right) if len(v) == 2)
            if dtype not in FLOATS:
                return np.asarray((a != b) & (errors == 0), bool)  # a doubtful comparison decides nothing
            far = np.abs(a - b) > SAFETY * errors + 1e-300
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            wrong = ~same & (far | np.isnan(a) != np.isnan(b))
        wrong = np.where(np.isnan(a) & ~np.isnan(b), "nan" not in self.relaxes, wrong)
        infinite = np.isinf(a) | np.isinf(b)
        if "infinities" in self.relaxes:
            wrong = wrong & ~infinite
        return np.asarray(wrong, bool)

    def special(self, case: Case, outcome: Outcome) -> Difference | None:
        """Signed zeros, infinities, NaN and denormals in plain float32, unless the rule excludes them."""
        if "reassociation" in self.relaxes:
            tensors = real_values(case, Bounded(self.near), self.random, self.drawn(case))
        else:
            tensors = special_values(case, special_choice(self.relaxes, _truncates(case)), self.random)
        return self.at_special(case, tensors, outcome)

    def at_special(self, case: Case, tensors: Mapping[str, Value], outcome: Outcome) -> Difference | None:
        """What both sides are at given special values; over the reals where the rule reassociates."""
        assert case.right is not None
        if "reassociation" in self.relaxes:
            return self._over_the_reals(case, tensors, outcome)
        domain = Domain()
        try:
            left = compute(case.left, tensors, domain)[0]
            right = compute(case.right, _with_numbers(case, tensors, domain), domain)[0]
        except (IndexError, TooLarge):
            return None  # ordinary values show it too
        if case.left.type.dtype not in FLOATS:
            return self._special_integers(case, tensors, left, right, outcome)
        left, right = (np.broadcast_to(np.asarray(v, np.float64), case.left.type.shape) for v in (left, right))
        outcome.special += 1
        # halves are rounded where an operator ends, and the two sides end theirs at different places
        whole = case.left.type.dtype in ("float32", "float64")
        exact = whole and (functions_used(case.left) | functions_used(case.right)) <= ROUNDED_ONCE
        excused = np.isnan(left) & (_infinite_inside(case.left, tensors) if "infinities" in self.relaxes else False)
        return self._shown(self._wrong_special(left, right, exact) & ~excused, tensors, left, right)

    def _special_integers(
        self, case: Case, tensors: Mapping[str, Value], left: Array, right: Array, outcome: Outcome
    ) -> Difference | None:
        """What comparisons and conversions give at special values; over the reals roundings may decide them."""
        sides = [side for side in (case.left, case.right) if side is not None]
        for word, test in (("infinities", np.isinf), ("nan", np.isnan)):
            if word in self.relaxes and any(_inside(side, tensors, test) for side in sides):
                return None
        outcome.special += 1
        left, right = (np.broadcast_to(v, case.left.type.shape) for v in (left, right))
        return self._shown(left != right, tensors, left, right)

    def _over_the_reals(self, case: Case, tensors: Mapping[str, Value], outcome: Outcome) -> Difference | None:
        """With zeros among the operands both sides are equal, and they are defined at the same points."""
        assert case.right is not None
        domain = Bounded(self.near)
        try:
            left = compute(case.left, tensors, domain)
            right = compute(case.right, _with_numbers(case, tensors, domain), domain)
        except (IndexError, TooLarge, Undefined, ZeroDivisionError):
            return None
        outcome.special += 1
        a, b = (np.broadcast_to(v[0], case.left.type.shape) for v in (left, right))
        wrong = np.broadcast_to(self._wrong(left, right, domain, case.left.type.dtype), a.shape)
        if case.left.type.dtype in FLOATS:
            undefined = np.isfinite(a) != np.isfinite(b)
            both = np.isfinite(a) & np.isfinite(b)
            wrong = np.where(both, wrong, undefined & (not {"nan", "infinities"} & self.relaxes))
        return self._shown(wrong, tensors, a, b, f"{domain.name}, zeros")

    @staticmethod
    def _shown(
        wrong: Array, tensors: Mapping[str, Value], left: Array, right: Array, domain: str = "float32, special values"
    ) -> Difference | None:
        if not np.any(wrong):
            return None
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        shown = {name: value[0] for name, value in tensors.items()}
        return Difference(place, left[place], right[place], domain, shown, left, right)

    def _wrong_special(self, left: Array, right: Array, exact: bool) -> Array:
        nan = np.isnan(left) != np.isnan(right)
        infinite = (np.isinf(left) != np.isinf(right)) | (np.isinf(left) & (left != right))
        infinite &= ~np.isnan(left) & ~np.isnan(right)
        zero = (left == 0) & (right == 0) & (np.signbit(left) != np.signbit(right))
        with np.errstate(all="ignore"):
            # a rule that does not say that it reassociates gives the very same floats
            near = left == right if exact else np.isclose(left, right, rtol=2e-3, atol=1e-30)
            near |= ~np.isfinite(left) | ~np.isfinite(right)
        excluded = np.zeros(left.shape, bool)
        if "nan" in self.relaxes:
            excluded |= np.isnan(left)
        if "infinities" in self.relaxes:
            excluded |= np.isinf(left) | np.isinf(right)
        if "signed_zero" in self.relaxes:
            zero = np.zeros(left.shape, bool)
        return np.asarray((nan | infinite | zero | ~near) & ~excluded, bool)

    def _measure_rounding(self, case: Case, outcome: Outcome) -> None:
        assert case.right is not None
        if case.left.type.dtype not in FLOATS:
            return
        domain = Domain()
        try:
            tensors = draw_values(case, domain, self.random)
            left = compute(case.left, tensors, domain)[0]
            right = compute(case.right, _with_numbers(case, tensors, domain), domain)[0]
        except (Undefined, ValueError, OverflowError, IndexError, TooLarge):
            return
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.where(np.isfinite(left), np.abs(left), 0.0), initial=0.0)
            both = np.isfinite(left) & np.isfinite(right)
            apart = np.max(np.where(both, np.abs(left.astype(np.float64) - right), 0.0), initial=0.0)
        if scale > 0 and np.any(both):
            outcome.rounding = max(outcome.rounding or 0.0, float(apart / scale))


def _with_numbers(case: Case, tensors: Mapping[str, Value], domain: Domain) -> dict[str, Value]:
    """The tensors with the numbers that the right side names."""
    assert case.right is not None
    found = dict(tensors)
    for name, leaf in leaves(case.right).items():
        if name not in found and leaf.number is not None:
            found[name] = domain.constant(leaf.number, leaf.type.dtype)
    return found


def _infinite_inside(term: Term, tensors: Mapping[str, Value]) -> bool:
    """Whether an infinity arises on the way: what is NaN may come of it."""
    return _inside(term, tensors, np.isinf)


def _inside(term: Term, tensors: Mapping[str, Value], test: Callable[[Array], Array]) -> bool:
    """Whether a value of a kind arises on the way."""
    return any(
        np.any(test(np.asarray(compute(part, tensors, Domain())[0], np.float64)))
        for part in subterms(term)
        if part.type.dtype in FLOATS
    )


def _truncates(case: Case) -> bool:
    """Whether a float becomes an integer, which is undefined for all that is no finite number."""
    assert case.right is not None
    parts = [t for side in (case.left, case.right) for t in subterms(side) if isinstance(t, Application)]
    return any(
        isinstance(node, Apply) and node.function == "cast" and node.dtype not in (*FLOATS, "bool")
        for part in parts
        for equation in part.instance.equations
        for node in walk(equation.body)
    )


def _inexact(case: Case) -> bool:
    """Whether a float that is no short binary fraction takes part: what the engine computed with it is rounded."""
    assert case.right is not None
    for side in (case.left, case.right):
        for term in subterms(side):
            given = term.attributes.values() if isinstance(term, Application) else [term.number]
            if any(map(_is_rounded, given)):
                return True
    return False


def _is_rounded(value: object) -> bool:
    return isinstance(value, float) and value == value and abs(value) < 1e30 and (value * 2**20) % 1 != 0
