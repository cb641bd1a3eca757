"""Judges index rules: on all small numbers, and for all numbers by z3."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.verification.instances.roles import nodes

CONSTANTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, -1, 0)
VARIABLES = range(-9, 26)
WIDE_CONSTANTS = (*range(-2, 20), 24, 32, 49)
WIDE_VARIABLES = range(-130, 260)
LARGEST = 60_000


class Meaningless(Exception):
    """An expression divides by zero."""


@dataclass(kw_only=True)
class IndexOutcome:
    """What the small numbers gave."""

    trials: int = 0
    generated: int = 0
    failure: dict[str, int] | None = None
    left: int | None = None
    right: int | None = None
    exhaustive: bool = True


def constants_of(rule: ast.IndexRule) -> set[str]:
    """The names that multiply or divide on the left: constants, in the engine's reading."""
    return {
        n.right.id
        for n in nodes(rule.left)
        if isinstance(n, ast.Binary) and n.operator in ("*", "//", "%") and isinstance(n.right, ast.Name)
    }


def divisors_of(expression: ast.Expression) -> list[ast.Expression]:
    """What an expression divides by."""
    return [n.right for n in nodes(expression) if isinstance(n, ast.Binary) and n.operator in ("//", "%")]


Numbers = Mapping[str, int]
_Computed = Callable[[Numbers], int]
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_TESTS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def value(expression: ast.Expression, names: Numbers) -> int:
    """The value at given numbers; division floors. Raises Meaningless for a division by zero."""
    try:
        return computed(expression)(names)
    except ZeroDivisionError:
        raise Meaningless from None


def computed(expression: ast.Expression) -> _Computed:
    """How an expression is computed at given numbers; divisions by zero raise ZeroDivisionError, others Meaningless."""
    match expression:
        case ast.Number(value=number):
            whole = int(number)
            return lambda names: whole
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.Unary(operator="-", operand=operand):
            inner = computed(operand)
            return lambda names: -inner(names)
        case ast.Binary(operator=sign, left=left, right=right) if sign in _ARITHMETIC:
            one, other, combine = computed(left), computed(right), _ARITHMETIC[sign]
            return lambda names: combine(one(names), other(names))
    return _meaningless


def _meaningless(names: Numbers) -> int:
    raise Meaningless


def _test(guard: ast.Expression) -> Callable[[Numbers], bool]:
    """How a guard is asked at given numbers; the exceptions are those of `computed`."""
    match guard:
        case ast.Truth(value=truth):
            return lambda names: truth
        case ast.Unary(operator="not", operand=operand):
            inner = _test(operand)
            return lambda names: not inner(names)
        case ast.Binary(operator="and" | "or" as word, left=left, right=right):
            first, second = _test(left), _test(right)
            if word == "and":
                return lambda names: first(names) and second(names)
            return lambda names: first(names) or second(names)
        case ast.Binary(operator=sign, left=left, right=right) if sign in _TESTS:
            one, other, compare = computed(left), computed(right), _TESTS[sign]
            return lambda names: compare(one(names), other(names))
    return lambda names: bool(_meaningless(names))


def applicability(rule: ast.IndexRule) -> Callable[[Numbers], bool]:
    """Whether the engine may apply a rule at given numbers: left divisors are positive and all guards hold."""
    divisors = [computed(d) for d in divisors_of(rule.left)]
    guards = [_test(g) for g in rule.guards]

    def asked(names: Numbers) -> bool:
        try:
            return all(d(names) > 0 for d in divisors) and all(g(names) for g in guards)
        except (Meaningless, ZeroDivisionError):
            return False

    return asked


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
