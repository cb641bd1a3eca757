"""Extents, indices and conditions as formulas of z3 over the integers."""

from __future__ import annotations

from typing import Any

from smartmem_rules.tensor.atoms import Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import Compare, Condition, Logic
from smartmem_rules.tensor.extents import Dimension, Extreme, Factor, is_symbolic
from smartmem_rules.tensor.index import Index

REAL = "real "
"""What the names of unknown real numbers begin with."""


class NoFormula(Exception):
    """An index is made of something that has no formula."""


class IndexFormulas:
    """Formulas of z3 for extents, indices and conditions; what is known of their parts is in `facts`.

    With `by_reach` a multiple of a loop's variable is a number of its own, of which is known how far it reaches: less
    than is true, and enough where a solver loses itself in products.
    """

    def __init__(self, z3: Any, by_reach: bool = False) -> None:
        self.z3 = z3
        self.by_reach = by_reach
        self.facts: list[Any] = []
        self._names: dict[object, Any] = {}

    def extent(self, value: int) -> Any:
        """An extent, or any other polynomial over dimensions."""
        if not is_symbolic(value):
            return self.z3.IntVal(int(value))
        total = self.z3.IntVal(0)
        for monomial, coefficient in value.terms:  # type: ignore[attr-defined]
            product = self.z3.IntVal(coefficient)
            for factor in monomial:
                product = product * self._factor(factor)
            total = total + product
        return total

    def _factor(self, factor: Factor) -> Any:
        if factor in self._names:
            return self._names[factor]
        if isinstance(factor, Dimension) and factor.name.startswith(REAL):
            made = self._names[factor] = self.z3.Real(factor.name)
            return made
        if isinstance(factor, Dimension):
            made = self._names[factor] = self.z3.Int(factor.name)
            self.facts.append(made >= factor.low)
            return made
        if isinstance(factor, Extreme):
            left, right = self.extent(factor.left), self.extent(factor.right)
            return self.z3.If(left <= right if factor.kind == "min" else right <= left, left, right)
        value, divisor = self.extent(factor.value), self.extent(factor.divisor)
        return self._quotient(factor, value, divisor)

    def _quotient(self, key: object, value: Any, divisor: Any) -> Any:
        """floor(value / divisor) as a name with what is known of it, which helps where the divisor is open."""
        made = self._names[key] = self.z3.Int(f"q{len(self._names)}")
        self.facts += [divisor > 0, made * divisor <= value, value < made * divisor + divisor]
        return made

    def index(self, index: Index) -> Any:
        """An index; its variables stay inside their extents. Raises NoFormula where tables or tensors decide."""
        total = self.extent(index.constant)
        for atom, coefficient in index.terms:
            if self.by_reach and isinstance(atom, Var) and is_symbolic(coefficient):
                total = total + self._multiple(atom, coefficient)
            else:
                total = total + self._atom(atom) * self.extent(coefficient)
        return total

    def _multiple(self, variable: Var, coefficient: int) -> Any:
        """c * v where 0 <= v < n: between 0 and c * (n - 1)."""
        key = variable, coefficient
        if key not in self._names:
            made = self._names[key] = self.z3.Int(f"m{len(self._names)}")
            factor, last = self.extent(coefficient), self.extent(coefficient * variable.extent - coefficient)
            self.facts += [
                self.extent(variable.extent) >= 1,
                self.z3.Implies(factor >= 0, self.z3.And(made >= 0, made <= last)),
                self.z3.Implies(factor <= 0, self.z3.And(made <= 0, made >= last)),
            ]
        return self._names[key]

    def _atom(self, atom: Atom) -> Any:
        if atom in self._names:
            return self._names[atom]
        match atom:
            case Var(name=name, extent=extent):
                made = self._names[atom] = self.z3.Int(name)
                self.facts += [made >= 0, made < self.extent(extent)]
                return made
            case Div(value=value, divisor=divisor):
                return self._quotient(atom, self.index(value), self.extent(divisor))
            case Mod(value=value, divisor=divisor):
                inner, by = self.index(value), self.extent(divisor)
                made = inner - self._quotient((atom, "quotient"), inner, by) * by
                self._names[atom] = made
                return made
            case Lookup() | Gathered():
                raise NoFormula

    def condition_if_any(self, condition: Condition) -> Any:
        """A condition, None where it has no formula."""
        try:
            return self._condition(condition)
        except NoFormula:
            return None

    def _condition(self, condition: Condition) -> Any:
        match condition:
            case Compare(operator=operator, left=left, right=right):
                a, b = self.index(left), self.index(right)
                return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}[operator]
            case Logic(operator="not", operands=(operand,)):
                return self.z3.Not(self._condition(operand))
            case Logic(operator=operator, operands=operands):
                parts = [self._condition(operand) for operand in operands]
                return self.z3.And(*parts) if operator == "and" else self.z3.Or(*parts)
