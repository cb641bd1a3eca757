"""Judges index rules: on all small numbers, and for all numbers by z3."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from smartmem_rules.analysis.index_values import Meaningless, Numbers, applicability, computed, constants_of, value
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import names_in

CONSTANTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, -1, 0)
VARIABLES = range(-9, 26)
WIDE_CONSTANTS = (*range(-2, 20), 24, 32, 49)
WIDE_VARIABLES = range(-130, 260)
LARGEST = 60_000


@dataclass(kw_only=True)
class IndexOutcome:
    """What the small numbers gave."""

    trials: int = 0
    generated: int = 0
    failure: dict[str, int] | None = None
    left: int | None = None
    right: int | None = None
    exhaustive: bool = True


def applies(rule: ast.IndexRule, names: Numbers) -> bool:
    """Whether the engine may apply the rule here: divisors of the left side are positive and all guards hold."""
    return applicability(rule)(names)


def test_index_rule(rule: ast.IndexRule, seed: int) -> IndexOutcome:
    """Try a rule at all small numbers, or at many of them where there are too many."""
    outcome = IndexOutcome()
    is_applied, left_side, right_side = applicability(rule), computed(rule.left), computed(rule.right)
    constants = constants_of(rule)
    for names in _assignments(rule, seed, outcome):
        outcome.generated += 1
        if not is_applied(names):
            continue
        outcome.trials += 1
        left = left_side(names)
        try:
            right: int | None = right_side(names)
        except (Meaningless, ZeroDivisionError):
            right = None
        if left != right or not _interval_kept(rule, names, constants, left):
            outcome.failure, outcome.left, outcome.right = dict(names), left, right
            return outcome
    return outcome


def _assignments(rule: ast.IndexRule, seed: int, outcome: IndexOutcome) -> Iterator[dict[str, int]]:
    names = sorted(set().union(*(names_in(e) for e in (rule.left, rule.right, *rule.guards))))
    constants = constants_of(rule)
    for fixed, free in ((WIDE_CONSTANTS, WIDE_VARIABLES), (CONSTANTS, VARIABLES)):
        ranges = [fixed if name in constants else tuple(free) for name in names]
        total = math.prod(map(len, ranges))
        if total <= LARGEST // 4:
            break
    if total <= LARGEST:
        for point in itertools.product(*ranges):
            yield dict(zip(names, point, strict=True))
        return
    outcome.exhaustive = False
    source = random.Random(seed)
    for _ in range(LARGEST):
        names_now = {name: source.choice(one) for name, one in zip(names, ranges, strict=True)}
        for guard in rule.guards:
            _solve(guard, names_now)
        yield names_now


def _solve(guard: ast.Expression, names: dict[str, int]) -> None:
    """Make `name == e` hold."""
    if isinstance(guard, ast.Binary) and guard.operator == "==" and isinstance(guard.left, ast.Name):
        try:
            names[guard.left.id] = value(guard.right, names)
        except Meaningless:
            return


def _interval_kept(rule: ast.IndexRule, names: Numbers, constants: set[str], actual: int) -> bool:
    """Whether interval analysis of both sides, over ranges that end at these numbers, contains the value."""
    if any(names[n] < 0 for n in names if n not in constants) or any(names[c] <= 0 for c in constants):
        return True
    try:
        left, right = (_index(side, names, constants) for side in (rule.left, rule.right))
    except (ValueError, Meaningless):
        return True
    return all(low <= actual <= high for low, high in (left.interval, right.interval))


def _index(expression: ast.Expression, names: Numbers, constants: set[str]) -> Index:
    match expression:
        case ast.Number(value=number):
            return Index(int(number))
        case ast.Name(id=name):
            return Index(names[name]) if name in constants else Index(0, ((Var(name, names[name] + 1), 1),))
        case ast.Unary(operand=operand):
            return _index(operand, names, constants) * -1
        case ast.Binary(operator=sign, left=left, right=right):
            a, b = _index(left, names, constants), _index(right, names, constants)
            match sign:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*" if b.is_constant:
                    return a * b.constant
                case "*" if a.is_constant:
                    return b * a.constant
                case "//" if b.is_constant:
                    return a // b.constant
                case "%" if b.is_constant:
                    return a % b.constant
    raise Meaningless
