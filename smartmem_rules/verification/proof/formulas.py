"""Elementwise terms as formulas of z3 over the real numbers.

What only some operator computes (a sum, a normalization) is one unknown number, the same on both sides where the same
operator is applied to the same operands. Of functions that are no arithmetic z3 knows the few facts given here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import Fact, operator_name
from smartmem_rules.language.patterns import subpatterns
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.patterns import is_absent, run_time_arguments
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, TensorType, reads, walk
from smartmem_rules.tensor.index import variable
from smartmem_rules.verification.instances.roles import nodes
from smartmem_rules.verification.semantics.bounded import PRECISION
from smartmem_rules.verification.semantics.terms import Application, Leaf, Term

_NEAR = PRECISION
_SHORT = 12
"""A number that is near to a fraction of so small a denominator, such as 0.16666667, stands for the fraction."""
_LARGEST_POWER = 8
_PLAIN_SHAPE = (5, 7)
_UNKNOWN = frozenset(["erf", "tanh", "floor", "ceil", "round", "sin", "cos", "tan", "atan"])
"""Functions of which nothing is used but that equal arguments give equal values."""


def kinds_of(operator: ast.Operator) -> dict[str, str]:
    """The kind of each attribute and compile-time operand."""
    kinds = {attribute.name: attribute.kind for attribute in operator.attributes}
    return kinds | {one.name: str(one.constant) for one in operator.inputs if one.constant is not None}


def _literal(expression: ast.Expression) -> bool:
    """Whether an attribute has the same value at all instances."""
    return not any(isinstance(node, ast.Name) for node in nodes(expression))


class Unprovable(Exception):
    """A rule is outside of what is proved; the message says why.

    `numbers` are elements of the operands at which a solver finds the sides different.
    """

    def __init__(self, reason: str, numbers: Mapping[str, Fraction] | None = None) -> None:
        super().__init__(reason)
        self.numbers = dict(numbers or {})


class Formulas:
    """Translates the two sides of one instance; each leaf is a variable.

    Attributes:
        axioms: facts about the functions that occur.
        conditions: where the terms translated so far divide by no zero.
        real: where their roots and logarithms are real numbers.
        optional: the names of attributes that are present or absent, whatever the guards say.
    """

    def __init__(
        self, z3: Any, instances: Instances, near: Sequence[float] = (), optional: frozenset[str] = frozenset()
    ) -> None:
        self.z3 = z3
        self.optional = optional
        self.instances = instances
        self.near = near
        self.axioms: list[Any] = []
        self.conditions: list[Any] = []
        self.real: list[Any] = []
        self._names: dict[str, Any] = {}
        self._opaque: dict[ast.PatternOperator, Any] = {}

    # --- terms ---

    def side(self, pattern: ast.Pattern, term: Term, matched: bool) -> Any:
        """One element of a side; `matched` is the left one, whose unmentioned attributes may be anything."""
        if isinstance(pattern, ast.PatternComputed):
            return self.scalar(pattern.value)
        if isinstance(term, Leaf):
            return self.number(term.number) if term.number is not None else self.leaf(term)
        assert isinstance(pattern, ast.PatternOperator)
        if not self._elementwise(term):
            return self._same(pattern, term)
        operands = {}
        arguments = [a for a in run_time_arguments(pattern) if not is_absent(a)]
        present = [(place, o) for place, o in enumerate(term.operands) if o is not None]
        if len(arguments) != len(present):
            raise Unprovable(f"{term.operator} takes any number of operands")
        for argument, (place, operand) in zip(arguments, present, strict=True):
            operands[f"${place}"] = self.side(argument, operand, matched)
        constants = self._attributes(pattern, term, matched)
        return self.expression(term.instance.equations[0].body, operands, constants)

    def leaf(self, leaf: Leaf) -> Any:
        """The variable of a leaf."""
        make = self.z3.Bool if leaf.type.dtype == "bool" else self.z3.Real
        return self._names.setdefault(leaf.name, make(leaf.name))

    def number(self, value: float | bool) -> Any:
        """A number; one that is near to what a guard names stands for it."""
        if isinstance(value, bool):
            return self.z3.BoolVal(value)
        if math.isinf(value) or math.isnan(value):
            raise Unprovable("an infinity is no real number")
        close = [n for n in self.near if math.isclose(n, value, rel_tol=_NEAR)]
        exact = Fraction(repr(close[0] if close else value))
        short = exact.limit_denominator(_SHORT)
        return self.z3.RealVal(str(short if close and math.isclose(short, exact, rel_tol=_NEAR) else exact))

    def _elementwise(self, term: Application) -> bool:
        """Whether every element of the operator is one expression of the operands' elements at the same place."""
        types = [None if o is None else TensorType(o.type.dtype, _PLAIN_SHAPE) for o in term.operands]
        try:
            plain = self.instances.get(term.operator, types, term.attributes, term.outputs)
        except (Unsupported, DefinitionError):
            return False
        if len(plain.equations) != 1 or len(term.instance.equations) != 1 or plain.outputs[0].shape != _PLAIN_SHAPE:
            return False
        equation = plain.equations[0]
        own = tuple(map(variable, equation.variables))
        simple = all(isinstance(node, Apply | Const | Read) for node in walk(equation.body))
        return simple and all(read.indices == own for read in reads(equation.body))

    def _same(self, pattern: ast.PatternOperator, term: Application) -> Any:
        """The unknown number that an operator gives: the same one wherever a rule writes the same application.

        That two applications agree at one instance says nothing of others, so what is written must say it.
        """
        for part in subpatterns(pattern):
            if isinstance(part, ast.PatternOperator):
                self._mentions_all(part)
        for known, value in self._opaque.items():
            if known == pattern:
                return value
        value = self.z3.Real(f"{term.operator}_{len(self._opaque)}")
        return self._opaque.setdefault(pattern, value)

    def _mentions_all(self, pattern: ast.PatternOperator) -> None:
        overloads = self.instances.base.operators.get(pattern.operator, ())
        names = {name for overload in overloads for name in kinds_of(overload)}
        if pattern.bundle is None and names - {attribute.name for attribute in pattern.attributes}:
            raise Unprovable(f"an attribute of {pattern.operator} may change what it gives")

    def numbers(self, model: Any) -> dict[str, Fraction]:
        """The elements of the leaves in a model of the solver."""
        found: dict[str, Fraction] = {}
        for name, unknown in self._names.items():
            value = model.eval(unknown, model_completion=True)
            if self.z3.is_bool(value):
                found[name] = Fraction(self.z3.is_true(value))
                continue
            if self.z3.is_algebraic_value(value):
                value = value.approx(20)
            if self.z3.is_rational_value(value):
                found[name] = Fraction(value.as_fraction())
        return found

    @property
    def unknown(self) -> list[str]:
        """The operators whose results are unknown numbers."""
        return sorted({pattern.operator for pattern in self._opaque})

    # --- attributes ---

    def _attributes(self, pattern: ast.PatternOperator, term: Application, matched: bool) -> dict[float, Any]:
        """What the numbers of an operator's formula stand for, where they are its attributes."""
        if pattern.bundle is not None:
            raise Unprovable(f"{term.operator} takes all attributes")
        kinds = kinds_of(term.instance.operator)
        mentioned = {a.name: a.value for a in pattern.attributes}
        if matched and kinds.keys() - mentioned.keys() - {"training_mode"}:
            raise Unprovable(f"an attribute of {term.operator} may change the formula")
        constants: dict[float, Any] = {}
        for name, expression in mentioned.items():
            value = term.attributes.get(name)
            if kinds[name] != "float" and not _literal(expression):
                raise Unprovable(f"the attribute {name} of {term.operator} may change the formula")
            if kinds[name] == "float" and matched and isinstance(expression, ast.Name):
                self._is_decided(expression.id)
            if value is None or kinds[name] != "float":
                continue
            if value in constants:
                raise Unprovable("two attributes have one value")
            constants[float(value)] = self.scalar(expression)  # type: ignore[arg-type]
        return constants

    def _is_decided(self, name: str) -> None:
        """Whether an attribute is there must be the same at all instances, not at the one that is looked at."""
        if name in self.optional:
            raise Unprovable(f"{name} may be absent, which changes the formula")

    def scalar(self, expression: ast.Expression) -> Any:
        """A number that is computed when the model is optimized."""
        z3 = self.z3
        match expression:
            case ast.Number(value=value):
                return self.number(value)
            case ast.Name(id=name):
                return self._names.setdefault(f"attribute {name}", z3.Real(f"attribute {name}"))
            case ast.Call(function="value", arguments=(ast.Name(id=name),)):
                return self._names.setdefault(name, z3.Real(name))
            case ast.Unary(operator="-", operand=operand):
                return -self.scalar(operand)
            case ast.Binary(operator="+" | "-" | "*" as operator, left=left, right=right):
                a, b = self.scalar(left), self.scalar(right)
                return {"+": a + b, "-": a - b, "*": a * b}[operator]
            case ast.Call(function="max" | "min" as function, arguments=(left, right)):
                return self._arithmetic(function, [self.scalar(left), self.scalar(right)])
            case ast.Call(function="clamp", arguments=(subject, low, high)):
                above = self._arithmetic("max", [self.scalar(subject), self.scalar(low)])
                return self._arithmetic("min", [above, self.scalar(high)])
        raise Unprovable("an attribute is computed from shapes")

    def guard(self, guard: ast.Expression) -> Any | None:
        """A guard about numbers; None for one that says nothing of them and is not needed."""
        match guard:
            case Fact(analysis=analysis, tensor=tensor):
                type_ = TensorType("float32", _PLAIN_SHAPE)
                holds = self.instances.get(operator_name(analysis), [type_], {}, 1).equations[0].body
                element = self._names.setdefault(tensor, self.z3.Real(tensor))
                return self.expression(holds, {"$0": element}, {}) == 1
            case ast.Binary(operator="<" | "<=" | ">" | ">=" | "==" as operator, left=left, right=right):
                try:
                    a, b = self.scalar(left), self.scalar(right)
                except Unprovable:
                    return None
                return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b}[operator]
            case ast.Call(function="near", arguments=(subject, ast.Number(value=value))):
                return self.scalar(subject) == self.number(value)
        return None

    # --- expressions ---

    def expression(self, expr: Expr, operands: Mapping[str, object], constants: Mapping[float, Any]) -> Any:
        """An expression at one element."""
        match expr:
            case Const(value=value):
                return constants[value] if not isinstance(value, bool) and value in constants else self.number(value)
            case Read(tensor=tensor) if tensor in operands:
                return operands[tensor]
            case Apply(function="cast", arguments=(argument,), dtype=dtype) if dtype == argument.dtype or (
                dtype in FLOATS and argument.dtype in FLOATS
            ):
                return self.expression(argument, operands, constants)
            case Apply(function="min" | "max" as function, arguments=(argument, Const(value=bound))) if bound == (
                math.inf if function == "min" else -math.inf
            ):
                return self.expression(argument, operands, constants)
            case Apply(function=function, arguments=arguments):
                return self._apply(function, [self.expression(a, operands, constants) for a in arguments])
        raise Unprovable("it reduces or moves elements")

    def _apply(self, function: str, values: list[Any]) -> Any:
        z3, a = self.z3, values[0]
        if function in ("div", "recip"):
            divisor = values[-1]
            self.conditions.append(divisor != 0)
            return a / divisor if function == "div" else 1 / divisor
        if function == "pow":
            return self._power(a, values[1])
        if function in ("sqrt", "rsqrt"):
            root = self._root(a)
            return root if function == "sqrt" else self._apply("recip", [root])
        if function == "exp":
            return self._exponential(a)
        if function == "expm1":
            return self._exponential(a) - 1
        if function == "log":
            return self._logarithm(a)
        if function == "log1p":
            return self._logarithm(1 + a)
        if function == "sigmoid":
            return 1 / (1 + self._exponential(-a))
        if function in _UNKNOWN:
            return z3.Function(function, z3.RealSort(), z3.RealSort())(a)
        return self._arithmetic(function, values)

    def _arithmetic(self, function: str, values: list[Any]) -> Any:
        z3 = self.z3
        a, b = values[0], values[-1]
        plain: dict[str, Callable[[], Any]] = {
            "neg": lambda: -a, "not": lambda: z3.Not(a), "abs": lambda: z3.If(a >= 0, a, -a),
            "sign": lambda: z3.If(a > 0, z3.RealVal(1), z3.If(a < 0, z3.RealVal(-1), z3.RealVal(0))),
            "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
            "fma": lambda: a * values[1] + b,
            "min": lambda: z3.If(a <= b, a, b), "max": lambda: z3.If(a >= b, a, b),
            "lt": lambda: a < b, "le": lambda: a <= b, "gt": lambda: a > b, "ge": lambda: a >= b,
            "eq": lambda: a == b, "ne": lambda: a != b, "and": lambda: z3.And(a, b), "or": lambda: z3.Or(a, b),
            "select": lambda: z3.If(a, values[1], b),
        }  # fmt: skip
        if function not in plain:
            raise Unprovable(f"{function} is not arithmetic")
        return plain[function]()

    def _power(self, base: Any, exponent: Any) -> Any:
        if not self.z3.is_rational_value(exponent):
            raise Unprovable("a power with an exponent that is no known number")
        number = exponent.as_fraction()
        if number == number.__class__(1, 2):
            return self._root(base)
        if number.denominator != 1 or abs(number) > _LARGEST_POWER:
            raise Unprovable(f"a power of {number}")
        product = self.z3.RealVal(1)
        for _ in range(abs(int(number))):
            product = product * base
        return product if number >= 0 else self._apply("recip", [product])

    def _root(self, square: Any) -> Any:
        root = self.z3.Function("sqrt", self.z3.RealSort(), self.z3.RealSort())(square)
        self.real.append(square >= 0)
        self.axioms.append(self.z3.Implies(square >= 0, self.z3.And(root >= 0, root * root == square)))
        return root

    def _exponential(self, exponent: Any) -> Any:
        z3 = self.z3
        exp, log = (z3.Function(name, z3.RealSort(), z3.RealSort()) for name in ("exp", "log"))
        self.axioms += [exp(exponent) > 0, log(exp(exponent)) == exponent]
        return exp(exponent)

    def _logarithm(self, argument: Any) -> Any:
        z3 = self.z3
        exp, log = (z3.Function(name, z3.RealSort(), z3.RealSort()) for name in ("exp", "log"))
        self.real.append(argument > 0)
        self.axioms.append(z3.Implies(argument > 0, exp(log(argument)) == argument))
        return log(argument)
