"""Normal forms of tensor expressions over the reals: sums of products of reads, powers and functions.

What a definition says is taken apart by the laws of a commutative ring: sums over an index are linear and are split
into one for each product, what does not depend on the index stands before the sum, sums of sums are one sum, sums of
products that share no index are products of sums. Roots, quotients and exponentials are powers: of the primitive part
of a polynomial, and `exp` turns sums into products. Conditions over indices are numbers, 1 where they hold. All other
functions (maxima, error functions) are the same for the same arguments. Two expressions with one normal form are equal
wherever both are defined; `Forms.needs` says where that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.expr import Apply, Condition, Const, Expr, FromIndex, Read, Reduce, Select
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.verification.proof import polynomials as p
from smartmem_rules.verification.proof.polynomials import (
    ONE,
    Atom,
    Key,
    NoNormalForm,
    Poly,
    constant,
    key,
    plus,
    scaled,
    single,
    times,
)
from smartmem_rules.verification.proof.signs import is_natural, is_positive, positive


@dataclass
class Forms:
    """Puts expressions into normal form.

    Attributes:
        number: the exact value of a literal of a float type.
        uniform: the numbers that all elements of some tensors are.
        known: polynomials that are known not to be zero.
        needs: what has to hold for the expressions to be defined: `not zero` or `not negative` of a polynomial.
    """

    number: Callable[[float], Fraction]
    uniform: Mapping[str, float] = field(default_factory=dict)
    known: frozenset[Key] = frozenset()
    needs: set[tuple[str, Key]] = field(default_factory=set)

    def form(self, expr: Expr) -> Poly:
        """The normal form. Raises NoNormalForm."""
        found = self._form(expr)
        if len(found) > p.MOST_TERMS:
            raise NoNormalForm("the sum has too many terms")
        return found

    def _form(self, expr: Expr) -> Poly:
        match expr:
            case Const(value=bool() as value):
                return constant(int(value))
            case Const(value=value):
                return self._number(value)
            case Read(tensor=tensor) if tensor in self.uniform:
                return self._number(self.uniform[tensor])
            case Read(tensor=tensor, indices=indices):
                if any(index.gathered for index in indices):
                    raise NoNormalForm("elements of a tensor decide an index")
                return single(Atom("element", (tensor, indices)))
            case FromIndex(index=index):
                if index.terms:
                    return single(Atom("function", ("index", index)))
                return p.of_extent(index.constant)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self._select(condition, then, otherwise)
            case Reduce(kind=kind, variables=variables, body=body):
                return self._reduce(kind, variables, body)
            case Apply():
                return self._apply(expr)
        raise NoNormalForm(f"{type(expr).__name__} has no normal form")

    def _number(self, value: float) -> Poly:
        if is_symbolic(value):
            return p.of_extent(value)  # type: ignore[arg-type]
        if not math.isfinite(value):
            raise NoNormalForm("an infinity is no real number")
        return constant(self.number(value) if isinstance(value, float) else Fraction(value))

    def _select(self, condition: Condition, then: Expr, otherwise: Expr) -> Poly:
        # what a branch needs to be defined is needed where it is taken only: that is said of the whole
        before = set(self.needs)
        first, second = self.form(then), self.form(otherwise)
        if self.needs != before:
            raise NoNormalForm("a side of a condition may be undefined")
        if first == second:
            return first
        holds = p.indicator(condition)
        return plus(times(holds, first), times(plus(constant(1), scaled(holds, -1)), second))

    def _apply(self, expr: Apply) -> Poly:
        name = expr.function
        if name == "select":
            return self._chosen(expr)
        if name == "cast":
            inner = expr.arguments[0]
            if inner.dtype == expr.dtype or (inner.dtype in FLOATS and expr.dtype in FLOATS):
                return self.form(inner)
            if inner.dtype == "bool" and expr.dtype in FLOATS:
                return self.form(inner)
            raise NoNormalForm(f"a cast from {inner.dtype} to {expr.dtype}")
        values = [self.form(argument) for argument in expr.arguments]
        made = self._arithmetic(name, values)
        return self._function(name, expr, values) if made is None else made

    def _arithmetic(self, name: str, values: list[Poly]) -> Poly | None:
        """What is made of sums, products, powers and exponentials; None for other functions."""
        first, last = values[0], values[-1]
        known: dict[str, Callable[[], Poly]] = {
            "add": lambda: plus(first, last),
            "sub": lambda: plus(first, scaled(last, -1)),
            "neg": lambda: scaled(first, -1),
            "mul": lambda: times(first, last),
            "fma": lambda: plus(times(first, values[1]), last),
            "div": lambda: times(first, self.power(last, Fraction(-1))),
            "recip": lambda: self.power(first, Fraction(-1)),
            "sqrt": lambda: self.power(first, Fraction(1, 2)),
            "rsqrt": lambda: self.power(first, Fraction(-1, 2)),
            "exp": lambda: p.exponential(first),
            "expm1": lambda: plus(p.exponential(first), constant(-1)),
            "sigmoid": lambda: self.power(plus(constant(1), p.exponential(scaled(first, -1))), Fraction(-1)),
        }
        if name in known:
            return known[name]()
        exponent = last.get(ONE, Fraction(0)) if name == "pow" and set(last) <= {ONE} else Fraction(-1)
        if exponent.denominator == 1 and 0 <= exponent <= p.LARGEST_POWER:
            return p.raised(first, int(exponent))
        return None

    def _function(self, name: str, expr: Apply, values: list[Poly]) -> Poly:
        if name in ("log", "log1p", "pow", "mod", "fmod", "asin", "acos", "acosh", "atanh"):
            self.needs.add((name, key(values[0])))
        if name in ("add", "mul", "min", "max", "and", "or", "eq", "ne"):
            values = sorted(values, key=lambda value: p.text(key(value)))
        return single(Atom("function", (name, expr.arguments[0].dtype in FLOATS, *map(key, values))))

    def _chosen(self, expr: Apply) -> Poly:
        test, then, otherwise = expr.arguments
        if isinstance(test, Apply) and test.function in ("eq", "ne"):
            difference = plus(self.form(test.arguments[0]), scaled(self.form(test.arguments[1]), -1))
            if difference and self._is_nonzero(difference):
                return self._where_known(otherwise if test.function == "eq" else then)
        before = set(self.needs)
        values = [self.form(argument) for argument in expr.arguments]
        if self.needs != before:
            raise NoNormalForm("a side of a condition may be undefined")
        return values[1] if values[1] == values[2] else single(Atom("function", ("select", *map(key, values))))

    def _where_known(self, expr: Expr) -> Poly:
        """A branch that is taken where the known polynomials are not zero: where they are, it need not be defined."""
        before = set(self.needs)
        found = self.form(expr)
        self.needs = before | {(what, k) for what, k in self.needs if what != "not zero" or k not in self.known}
        return found

    def _is_nonzero(self, poly: Poly) -> bool:
        if key(poly) in self.known:
            return True
        content, rest = p.primitive(poly)
        pieces = [atom for atom, _ in next(iter(content))] if content else []
        return is_positive(poly) or (
            (set(rest) == {ONE} or key(rest) in self.known)
            and all(a.kind == "exp" or (a.kind == "extent" and positive(a)) or self._base_known(a) for a in pieces)
        )

    def _base_known(self, atom: Atom) -> bool:
        return atom.kind == "power" and atom.parts[0] in self.known

    def power(self, poly: Poly, exponent: Fraction) -> Poly:
        """A polynomial to a power, of its primitive part and of what all its terms share."""
        if not poly:
            if exponent < 0:
                raise NoNormalForm("a division by zero")
            return {}
        content, rest = p.primitive(poly)
        ((monomial, coefficient),) = content.items()
        whole = exponent.denominator == 1
        if not whole:
            # only what is surely positive comes out of a root
            kept = frozenset((a, power) for a, power in monomial if positive(a) or a.kind == "exp")
            inner = {m | ONE: c for m, c in times({frozenset(monomial - kept): Fraction(1)}, rest).items()}
            sign = 1 if coefficient > 0 else -1
            monomial, rest = kept, scaled(inner, sign)
            coefficient = abs(coefficient)
        root = p.root(coefficient, exponent)
        if root is None:
            rest, root = scaled(rest, coefficient), Fraction(1)
        for atom, _ in monomial:
            if exponent < 0 and not (atom.kind == "exp" or positive(atom)):
                self._need("not zero", p.base_of(atom) if atom.kind == "power" else single(atom))
        outer: Poly = {frozenset((a, power * exponent) for a, power in monomial): root}
        if set(rest) == {ONE} and rest[ONE] == 1:
            return outer
        if not whole:
            self._need("not negative", rest)
        if exponent < 0:
            self._need("not zero", rest)
        atoms = p.power_of(rest, exponent)
        return times(outer, atoms)

    def _need(self, what: str, poly: Poly) -> None:
        trivial = is_positive(poly) if what == "not zero" else is_natural(poly)
        if not trivial:
            self.needs.add((what, key(poly)))

    def _reduce(self, kind: str, variables: tuple[Var, ...], body: Expr) -> Poly:
        before = set(self.needs)
        inner = self.form(body)
        new = self.needs - before
        self.needs = before | {(what, p.bound(variables, k)) for what, k in new}
        if kind == "sum":
            total: Poly = {}
            for monomial, coefficient in inner.items():
                total = plus(total, scaled(p.summed(variables, monomial), coefficient))
            return total
        if kind == "prod":
            exps = p.product_of_exponentials(variables, inner)
            if exps is not None:
                return exps
        used = tuple(v for v in variables if v in p.variables_of(key(inner)))
        if kind in ("max", "min", "any", "all"):
            variables = used
            if not variables:
                return inner
        return single(Atom("reduce", (kind, *p.canonical(variables, key(inner)))))
