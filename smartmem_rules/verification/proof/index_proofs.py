"""Proves index rules for all integers with z3.

Quotients and remainders become fresh numbers with their defining inequalities, so that what is left are polynomials.
Two lemmas about integers help the solver over products: of two different multiples of a positive number one is larger
by at least that number, and quotients of one number by one divisor are equal.
"""

from __future__ import annotations

import itertools
from dataclasses import field
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.instantiate import names_in

MILLISECONDS = 120_000
RESOURCES = 4_000_000, 20_000_000
"""What z3 may spend on a question without the lemmas and with them: its own count, the same on a busy machine."""


@dataclass(kw_only=True)
class Translation:
    """A rule as z3 terms; `facts` define the fresh numbers."""

    z3: Any
    names: dict[str, Any] = field(default_factory=dict)
    facts: list[Any] = field(default_factory=list)
    quotients: list[tuple[Any, Any, Any, Any]] = field(default_factory=list)
    fresh: itertools.count[int] = field(default_factory=itertools.count)

    def term(self, expression: ast.Expression) -> Any:
        """An integer expression."""
        match expression:
            case ast.Number(value=value):
                return self.z3.IntVal(int(value))
            case ast.Name(id=name):
                return self.names.setdefault(name, self.z3.Int(name))
            case ast.Unary(operator="-", operand=operand):
                return -self.term(operand)
            case ast.Binary(operator=operator, left=left, right=right):
                a, b = self.term(left), self.term(right)
                match operator:
                    case "+":
                        return a + b
                    case "-":
                        return a - b
                    case "*":
                        return a * b
                    case "//":
                        return self._divide(a, b)[0]
                    case "%":
                        return self._divide(a, b)[1]
        raise ValueError(f"{expression.span}: no proof covers this")

    def _divide(self, a: Any, b: Any) -> tuple[Any, Any]:
        for other, divisor, quotient, rest in self.quotients:
            if self.z3.eq(other, a) and self.z3.eq(divisor, b):
                return quotient, rest
        number = next(self.fresh)
        quotient, rest = self.z3.Int(f"q{number}"), self.z3.Int(f"r{number}")
        self.facts += [a == b * quotient + rest, rest >= 0, rest < b]
        self.quotients.append((a, b, quotient, rest))
        return quotient, rest

    def condition(self, guard: ast.Expression) -> Any:
        """A guard."""
        match guard:
            case ast.Truth(value=value):
                return self.z3.BoolVal(value)
            case ast.Unary(operator="not", operand=operand):
                return self.z3.Not(self.condition(operand))
            case ast.Binary(operator="and" | "or" as operator, left=left, right=right):
                both = self.condition(left), self.condition(right)
                return self.z3.And(*both) if operator == "and" else self.z3.Or(*both)
            case ast.Binary(operator=operator, left=left, right=right):
                a, b = self.term(left), self.term(right)
                compared = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
                return compared[operator]
        raise ValueError(f"{guard.span}: no proof covers this guard")

    def lemmas(self) -> list[Any]:
        """True statements about products of integers that the solver does not find itself."""
        found = []
        for (_, b, p, _), (_, c, q, _) in itertools.combinations(self.quotients, 2):
            for divisor in {b.get_id(): b, c.get_id(): c}.values():
                found.append(self.z3.Implies(self.z3.And(divisor > 0, p > q), divisor * p >= divisor * q + divisor))
                found.append(self.z3.Implies(self.z3.And(divisor > 0, p < q), divisor * p + divisor <= divisor * q))
        return found


@dataclass(frozen=True)
class Proof:
    """What a solver said: proved, refuted (with numbers) or unknown (with a reason)."""

    answer: str
    numbers: dict[str, int] | None = None
    reason: str | None = None


def prove_index_rule(rule: ast.IndexRule, milliseconds: int = MILLISECONDS) -> Proof:
    """Whether a rule holds for all integers that satisfy its guards; divisors of its left side are positive."""
    import z3  # type: ignore[import-untyped]

    try:
        return _prove(rule, z3, milliseconds)
    except ValueError as reason:
        return Proof("unknown", reason=str(reason))


def _prove(rule: ast.IndexRule, z3: Any, milliseconds: int) -> Proof:
    from smartmem_rules.analysis.index_values import divisors_of  # start-up time

    translation = Translation(z3=z3)
    left = translation.term(rule.left)
    assumed = [translation.term(d) > 0 for d in divisors_of(rule.left)]
    guards = [translation.condition(g) for g in rule.guards]
    before = [*translation.facts, *assumed, *guards]
    # the right side must be defined: its divisors are positive
    count = len(translation.facts)
    right = translation.term(rule.right)
    positive = [translation.term(d) > 0 for d in divisors_of(rule.right)]
    defined = translation.facts[count:]
    lemmas = translation.lemmas()
    for goal, known in ((z3.And(*positive) if positive else None, before), (left == right, [*before, *defined])):
        if goal is None:
            continue
        proof = _refute(z3, [*known, z3.Not(goal)], lemmas, sorted(names_in(rule.left)), translation, milliseconds)
        if proof.answer != "proved":
            return proof
    return Proof("proved")


def _refute(
    z3: Any, facts: list[Any], lemmas: list[Any], names: list[str], translation: Translation, milliseconds: int
) -> Proof:
    reason = ""
    for extra, resources in zip(([], lemmas), RESOURCES, strict=True):
        solver = z3.Solver()
        solver.set("timeout", milliseconds)
        solver.set("rlimit", resources)
        solver.add(*facts, *extra)
        answer = solver.check()
        if answer == z3.unsat:
            return Proof("proved")
        if answer == z3.sat:
            model = solver.model()
            numbers = {n: model.eval(translation.names[n], model_completion=True).as_long() for n in names}
            return Proof("refuted", numbers)
        reason = f"z3: {solver.reason_unknown()}"
    return Proof("unknown", reason=reason)
