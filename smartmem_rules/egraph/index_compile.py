"""Index rules of `.smr` files as egglog rules with interval guards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass

DECLARATIONS = """
(sort Ix)
(constructor V (i64) Ix)
(constructor K (i64) Ix)
(constructor Plus (Ix Ix) Ix)
(constructor Times (Ix Ix) Ix)
(constructor Over (Ix Ix) Ix)
(constructor Modulo (Ix Ix) Ix)
(relation Sum (Ix Ix Ix))
(function low (Ix) i64 :merge (max old new))
(function high (Ix) i64 :merge (min old new))
(ruleset index)
(rule ((= ?r (Plus ?a ?b))) ((Sum ?a ?b ?r) (Sum ?b ?a ?r)) :ruleset index)
(rule ((= ?r (K ?c))) ((set (low ?r) ?c) (set (high ?r) ?c)) :ruleset index)
(rule ((= ?r (Plus ?a ?b)) (= ?l (+ (low ?a) (low ?b))) (= ?h (+ (high ?a) (high ?b))))
  ((set (low ?r) ?l) (set (high ?r) ?h)) :ruleset index)
(rule ((= ?r (Times ?a (K ?c))) (>= ?c 0) (= ?l (* ?c (low ?a))) (= ?h (* ?c (high ?a))))
  ((set (low ?r) ?l) (set (high ?r) ?h)) :ruleset index)
(rule ((= ?r (Times ?a (K ?c))) (< ?c 0) (= ?l (* ?c (high ?a))) (= ?h (* ?c (low ?a))))
  ((set (low ?r) ?l) (set (high ?r) ?h)) :ruleset index)
(rule ((= ?r (Over ?a (K ?c))) (> ?c 0) (= ?l (low ?a)) (= ?h (high ?a)) (>= ?l 0))
  ((set (low ?r) (/ ?l ?c)) (set (high ?r) (/ ?h ?c))) :ruleset index)
(rule ((= ?r (Modulo ?a (K ?c))) (> ?c 0)) ((set (low ?r) 0) (set (high ?r) (- ?c 1))) :ruleset index)
(rule ((= ?r (Modulo ?a (K ?c))) (> ?c 0) (= ?h (high ?a)) (>= (low ?a) 0)) ((set (high ?r) ?h)) :ruleset index)
(rule ((= (low ?a) ?l) (= (high ?a) ?l)) ((union ?a (K ?l))) :ruleset index)
"""
"""Intervals meet at unions; an expression of one value is that constant."""

NAMES = {"+": "Plus", "*": "Times", "//": "Over", "%": "Modulo"}
ARITHMETIC = {"+": "+", "-": "-", "*": "*", "//": "/", "%": "%"}


class IndexRuleError(SmartmemError):
    """An index rule uses what interval arithmetic cannot decide; the message begins with its place."""


@dataclass
class _Compiler:
    rule: ast.IndexRule
    constants: set[str] = field(default_factory=set)
    facts: list[str] = field(default_factory=list)
    fresh: itertools.count[int] = field(default_factory=itertools.count)

    def compile(self) -> str:
        self._find_constants(self.rule.left)
        root = self._match(self.rule.left)
        for guard in self.rule.guards:
            self.facts.append(self._guard(guard))
        if isinstance(self.rule.left, ast.Binary) and self.rule.left.operator in ("//", "%", "*"):
            # a class of one value is a constant: rewriting it further only grows it
            self.facts.append(f"(!= (low {root}) (high {root}))")
        right = self._build(self.rule.right)
        return f'(rule ({" ".join(self.facts)}) ((union {root} {right})) :ruleset index :name "{self.rule.name}")'

    def _find_constants(self, expr: ast.Expression) -> None:
        """Names that multiply or divide stand for constants."""
        if isinstance(expr, ast.Binary):
            if expr.operator in ("*", "//", "%"):
                self.constants |= {n.id for n in (expr.right,) if isinstance(n, ast.Name)}
            self._find_constants(expr.left)
            self._find_constants(expr.right)

    def _match(self, expr: ast.Expression) -> str:
        match expr:
            case ast.Name(id=name):
                return f"(K ?{name})" if name in self.constants else f"?{name}"
            case ast.Number(value=value):
                return f"(K {int(value)})"
            case ast.Binary(operator="+", left=left, right=right):
                result = f"?s{next(self.fresh)}"
                self.facts.append(f"(Sum {self._match(left)} {self._match(right)} {result})")
                return result
            case ast.Binary(operator="*" | "//" | "%" as operator, left=left, right=right):
                result = f"?s{next(self.fresh)}"
                self.facts.append(f"(= {result} ({NAMES[operator]} {self._match(left)} {self._match(right)}))")
                return result
            case _:
                raise IndexRuleError(f"{expr.span}: the left side may use + * // %, names and numbers")

    def _build(self, expr: ast.Expression) -> str:
        if self._is_constant(expr):
            return f"(K {self._value(expr, 'low')})"
        match expr:
            case ast.Name(id=name):
                return f"?{name}"
            case ast.Binary(operator="-", left=left, right=right):
                return f"(Plus {self._build(left)} (Times {self._build(right)} (K -1)))"
            case ast.Binary(operator=operator, left=left, right=right) if operator in NAMES:
                if operator == "*" and self._is_constant(left):
                    left, right = right, left
                return f"({NAMES[operator]} {self._build(left)} {self._build(right)})"
            case _:
                raise IndexRuleError(f"{expr.span}: the right side may use + - * // %, names and numbers")

    def _is_constant(self, expr: ast.Expression) -> bool:
        match expr:
            case ast.Number():
                return True
            case ast.Name(id=name):
                return name in self.constants
            case ast.Unary(operator="-", operand=operand):
                return self._is_constant(operand)
            case ast.Binary(left=left, right=right):
                return self._is_constant(left) and self._is_constant(right)
            case _:
                return False

    def _value(self, expr: ast.Expression, bound: str) -> str:
        """The least (`low`) or greatest (`high`) value as an egglog number."""
        match expr:
            case ast.Number(value=value):
                return str(int(value))
            case ast.Name(id=name):
                return f"?{name}" if name in self.constants else f"({bound} ?{name})"
            case ast.Unary(operator="-", operand=operand):
                return f"(- 0 {self._value(operand, _other(bound))})"
            case ast.Binary(operator="+", left=left, right=right):
                return f"(+ {self._value(left, bound)} {self._value(right, bound)})"
            case ast.Binary(operator="-", left=left, right=right):
                return f"(- {self._value(left, bound)} {self._value(right, _other(bound))})"
            case ast.Binary(operator=operator, left=left, right=right) if (
                operator in ARITHMETIC and self._is_constant(left) and self._is_constant(right)
            ):
                return f"({ARITHMETIC[operator]} {self._value(left, bound)} {self._value(right, bound)})"
            case _:
                raise IndexRuleError(f"{expr.span}: intervals do not bound this")

    def _guard(self, guard: ast.Expression) -> str:
        match guard:
            case ast.Binary(operator="<" | "<=" as operator, left=left, right=right):
                return f"({operator} {self._value(left, 'high')} {self._value(right, 'low')})"
            case ast.Binary(operator=">" | ">=" as operator, left=left, right=right):
                return f"({operator} {self._value(left, 'low')} {self._value(right, 'high')})"
            case ast.Binary(operator="==" | "!=" as operator, left=left, right=right) if self._is_constant(
                left
            ) and self._is_constant(right):
                return f"({'=' if operator == '==' else '!='} {self._value(left, 'low')} {self._value(right, 'low')})"
            case _:
                raise IndexRuleError(f"{guard.span}: a guard of an index rule compares sums of names and numbers")


def _other(bound: str) -> str:
    return "high" if bound == "low" else "low"


def compile_index_rules(rules: Sequence[ast.IndexRule]) -> list[str]:
    """The egglog rules, one text each.

    Raises:
        IndexRuleError: a rule uses what interval arithmetic cannot decide.
    """
    return [_Compiler(rule).compile() for rule in rules]
