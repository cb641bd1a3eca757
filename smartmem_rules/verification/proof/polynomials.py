"""Polynomials over the elements of tensors: sums of products of reads, extents, powers, functions and reductions.

A polynomial maps products to coefficients, so that equal sums are equal whatever the order of their terms. Sums over
indices are atoms with bound indices, named so that equal ones are equal whatever they were called.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Condition, Logic, map_condition
from smartmem_rules.tensor.extents import Dimension, terms_of
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.substitution import substitute

Monomial = frozenset[tuple["Atom", Fraction]]
Key = frozenset[tuple[Monomial, Fraction]]
Poly = dict[Monomial, Fraction]

ONE: Monomial = frozenset()
MOST_TERMS = 120
_MOST_BOUND = 5
LARGEST_POWER = 8


class NoNormalForm(Exception):
    """An expression is outside of what is put into normal form; the message says why."""


@dataclass(frozen=True)
class Atom:
    """What a product is made of.

    `kind` is one of: element, extent, exp (of a product), power (of a polynomial: its base), function, reduce (of a
    kind, over indices), holds (a condition).
    """

    kind: str
    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.parts)))  # atoms are deep, and keys of all sums

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]


# --- polynomials ---


def key(poly: Poly) -> Key:
    """A polynomial as a value."""
    return frozenset(poly.items())


def constant(value: Fraction | int) -> Poly:
    """A number."""
    return {ONE: Fraction(value)} if value else {}


def single(atom: Atom) -> Poly:
    """One atom."""
    return {frozenset(((atom, Fraction(1)),)): Fraction(1)}


def of_extent(value: int) -> Poly:
    """A polynomial over open extents."""
    total: Poly = {}
    for monomial, coefficient in terms_of(value).items():
        product: Poly = constant(coefficient)
        for factor in monomial:
            product = times(product, single(Atom("extent", (factor,))))
        total = plus(total, product)
    return total


def plus(left: Poly, right: Poly) -> Poly:
    """The sum."""
    total = dict(left)
    for monomial, coefficient in right.items():
        value = total.get(monomial, Fraction(0)) + coefficient
        if value:
            total[monomial] = value
        else:
            total.pop(monomial, None)
    return total


def scaled(poly: Poly, factor: Fraction | int) -> Poly:
    """A multiple."""
    return {m: c * factor for m, c in poly.items()} if factor else {}


def times(left: Poly, right: Poly) -> Poly:
    """The product."""
    if len(left) * len(right) > MOST_TERMS:
        raise NoNormalForm("the product has too many terms")
    total: Poly = {}
    for first, a in left.items():
        for second, b in right.items():
            for monomial, c in _joined(first, second).items():
                total[monomial] = total.get(monomial, 0) + a * b * c
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _joined(first: Monomial, second: Monomial) -> Poly:
    powers = dict(first)
    if powers.keys().isdisjoint(atom for atom, _ in second):
        both = first | second
        if not any(atom.kind == "power" and power >= 1 for atom, power in both):
            return {both: Fraction(1)}
    again: Poly = {ONE: Fraction(1)}
    for atom, power in second:
        powers[atom] = powers.get(atom, Fraction(0)) + power
    for atom in [a for a, p in powers.items() if a.kind == "holds" and p]:
        powers[atom] = Fraction(1)
    for atom in [a for a, p in powers.items() if a.kind == "power" and p >= 1]:
        # a whole power of a polynomial is a polynomial again
        whole = math.floor(powers[atom])
        powers[atom] -= whole
        again = times(again, raised(base_of(atom), whole))
    monomial = frozenset((a, p) for a, p in powers.items() if p)
    return {monomial: Fraction(1)} if set(again) == {ONE} else times({monomial: Fraction(1)}, again)


def raised(poly: Poly, exponent: int) -> Poly:
    """A whole power."""
    if exponent > LARGEST_POWER:
        raise NoNormalForm(f"a power of {exponent}")
    result = constant(1)
    for _ in range(exponent):
        result = times(result, poly)
    return result


def base_of(atom: Atom) -> Poly:
    """The polynomial that an atom of the kind `power` has powers of."""
    return dict(atom.parts[0])


def power_of(base: Poly, exponent: Fraction) -> Poly:
    """A power of a primitive polynomial."""
    whole = math.floor(exponent)
    rest = exponent - whole
    atom = Atom("power", (key(base),))
    if whole > 0:
        fraction = {frozenset(((atom, rest),)): Fraction(1)} if rest else constant(1)
        return times(fraction, raised(base, whole))
    return {frozenset(((atom, exponent),)): Fraction(1)}


def primitive(poly: Poly) -> tuple[Poly, Poly]:
    """(what all terms share, as one product; the rest), the sign and size fixed by the first term."""
    shared = dict(next(iter(poly)))
    for monomial in poly:
        powers = dict(monomial)
        shared = {a: min(p, powers[a]) for a, p in shared.items() if a in powers and (p > 0) == (powers[a] > 0)}
    shared = {a: p for a, p in shared.items() if a.kind != "holds"}
    common = frozenset(shared.items())
    rest: Poly = {}
    for monomial, coefficient in poly.items():
        powers = dict(monomial)
        for atom, power in common:
            powers[atom] -= power
        rest[frozenset((a, p) for a, p in powers.items() if p)] = coefficient
    leading = rest[min(rest, key=text)]
    return {common: leading}, scaled(rest, 1 / leading)


def root(value: Fraction, exponent: Fraction) -> Fraction | None:
    """A number to a power where that is rational, else None."""
    if exponent.denominator == 1:
        return value ** int(exponent)
    if value < 0:
        return None
    roots = []
    for part in (value.numerator, value.denominator):
        found = math.isqrt(part)
        if exponent.denominator != 2 or found * found != part:
            return None
        roots.append(found)
    return Fraction(roots[0], roots[1]) ** exponent.numerator


def exponential(poly: Poly) -> Poly:
    """exp of a sum: the product of the exponentials of its terms."""
    powers: dict[Atom, Fraction] = {}
    for monomial, coefficient in poly.items():
        powers[Atom("exp", (monomial,))] = coefficient
    return {frozenset(powers.items()): Fraction(1)}


# --- conditions ---


def indicator(condition: Condition) -> Poly:
    """1 where a condition over indices holds, else 0."""
    match condition:
        case Compare(operator="!=", left=left, right=right):
            return plus(constant(1), scaled(indicator(Compare("==", left, right)), -1))
        case Compare(operator="<", left=left, right=right):
            return single(Atom("holds", ("<=", right - left - 1)))
        case Compare(operator="<=", left=left, right=right):
            return single(Atom("holds", ("<=", right - left)))
        case Compare(left=left, right=right):
            difference = right - left
            first = min(difference, difference * -1, key=str)
            return single(Atom("holds", ("==", first)))
        case Logic(operator="not", operands=(operand,)):
            return plus(constant(1), scaled(indicator(operand), -1))
        case Logic(operator="and", operands=operands):
            result = constant(1)
            for operand in operands:
                result = times(result, indicator(operand))
            return result
        case Logic(operands=operands):
            result = constant(1)
            for operand in operands:
                result = times(result, plus(constant(1), scaled(indicator(operand), -1)))
            return plus(constant(1), scaled(result, -1))


# --- reductions ---


def summed(variables: Iterable[Var], monomial: Monomial) -> Poly:
    """The sum of a product: factors that do not depend on an index stand before it, those that share one together."""
    result: Poly = constant(1)
    opened: set[Var] = set(variables)
    inner: list[tuple[Atom, Fraction]] = []
    for atom, power in monomial:
        if atom.kind == "reduce" and atom.parts[0] == "sum" and power == 1 and variables_of(atom) & opened:
            # a sum of sums is one sum
            _, bound_variables, body = atom.parts
            new = {v: Var(f"{v.name}'{len(opened)}", v.extent) for v in bound_variables}
            opened |= set(new.values())
            ((factors, coefficient),) = renamed(dict(body), new).items()
            result = scaled(result, coefficient)
            inner += factors
        else:
            inner.append((atom, power))
    groups = _connected(inner, opened)
    for group_variables, atoms in groups:
        product: Poly = constant(1)
        for atom, power in atoms:
            product = times(product, {frozenset(((atom, power),)): Fraction(1)})
        if not group_variables:
            result = times(result, product)
            continue
        if not atoms:
            for variable in group_variables:
                result = times(result, of_extent(variable.extent))
            continue
        if len(product) != 1:
            raise NoNormalForm("a sum over a product of sums")
        result = times(result, single(Atom("reduce", ("sum", *canonical(tuple(group_variables), key(product))))))
    return result


def _connected(
    atoms: list[tuple[Atom, Fraction]], opened: set[Var]
) -> list[tuple[set[Var], list[tuple[Atom, Fraction]]]]:
    """The factors in groups that share indices; each index that no factor has is a group of its own."""
    groups: list[tuple[set[Var], list[tuple[Atom, Fraction]]]] = []
    for atom, power in atoms:
        own = set(variables_of(atom) & opened)
        merged: tuple[set[Var], list[tuple[Atom, Fraction]]] = (own, [(atom, power)])
        if own:
            for group in [g for g in groups if g[0] & own]:
                groups.remove(group)
                merged = (merged[0] | group[0], group[1] + merged[1])
        groups.append(merged)
    seen = {v for own, _ in groups for v in own}
    return [*groups, *(({v}, []) for v in sorted(opened - seen, key=lambda v: v.name))]


def product_of_exponentials(variables: tuple[Var, ...], inner: Poly) -> Poly | None:
    """The product over indices of exponentials: the exponential of the sum."""
    if len(inner) != 1:
        return None
    ((monomial, coefficient),) = inner.items()
    if coefficient != 1 or any(atom.kind != "exp" for atom, _ in monomial):
        return None
    total: Poly = {}
    for atom, power in monomial:
        total = plus(total, scaled(summed(variables, atom.parts[0]), power))
    return exponential(total)


def canonical(variables: tuple[Var, ...], body: Key) -> tuple[tuple[Var, ...], Key]:
    """A body over bound indices whose names do not matter: the least of all ways to name them."""
    if len(variables) > _MOST_BOUND:
        raise NoNormalForm("a sum over too many indices")
    inside = variables_of(body, inner=True) - set(variables)
    level = 1 + max((_level(v) for v in inside), default=-1)
    best = None
    for order in _orders(variables):
        new = {old: Var(f"#{level}.{place}", old.extent) for place, old in enumerate(order)}
        made = key(renamed(dict(body), new))
        own = tuple(new[v] for v in order)
        candidate = (str([v.extent for v in own]), text(made), own, made)
        if best is None or candidate[:2] < best[:2]:
            best = candidate
    assert best is not None
    return best[2], best[3]


def _orders(variables: tuple[Var, ...]) -> Iterator[tuple[Var, ...]]:
    """All orders in which indices of equal extents may stand; different extents have one order."""
    extents = sorted({repr(v.extent) for v in variables})
    groups = [[v for v in variables if repr(v.extent) == extent] for extent in extents]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield tuple(v for part in parts for v in part)


def bound(variables: tuple[Var, ...], body: Key) -> Key:
    """What is needed for all values of some indices."""
    used = tuple(v for v in variables if v in variables_of(body))
    if not used:
        return body
    return key(single(Atom("reduce", ("every", *canonical(used, body)))))


def _level(var: Var) -> int:
    return int(var.name[1:].split(".")[0]) if var.name.startswith("#") else -1


def renamed(thing: Poly, new: Mapping[Var, Var]) -> Poly:
    """A polynomial with indices renamed."""
    return dict(_renamed(key(thing), new))


def _renamed(thing: Any, new: Mapping[Var, Var]) -> Any:
    match thing:
        case Index():
            return substitute(thing, {old: Index(0, ((var, 1),)) for old, var in new.items()})
        case Atom(kind=kind, parts=parts):
            return Atom(kind, _renamed(parts, new))
        case Var():
            return new.get(thing, thing)
        case tuple():
            return tuple(_renamed(part, new) for part in thing)
        case frozenset():
            return frozenset(_renamed(part, new) for part in thing)
        case Compare() | Logic():
            return map_condition(thing, lambda index: _renamed(index, new))
        case _:
            return thing


def variables_of(thing: Any, inner: bool = False) -> frozenset[Var]:
    """The indices that occur, without those that are bound (unless these are meant too)."""
    match thing:
        case Index():
            return thing.variables
        case Atom(kind="reduce", parts=(_, own, body)):
            found = variables_of(body, inner)
            return found | set(own) if inner else found - set(own)
        case Atom(parts=parts):
            return variables_of(parts, inner)
        case tuple() | frozenset():
            return frozenset().union(*(variables_of(part, inner) for part in thing))
        case _:
            return frozenset()


# --- an order of things, to choose a first one by ---


@lru_cache(maxsize=1 << 15)
def text(thing: Any) -> str:
    """A text that is the same for equal things."""
    match thing:
        case Atom(kind=kind, parts=parts):
            return f"{kind}{text(parts)}"
        case frozenset():
            return "{" + ",".join(sorted(map(text, thing))) + "}"
        case tuple():
            return "(" + ",".join(map(text, thing)) + ")"
        case Var(name=name, extent=extent):
            return f"{name}<{extent!r}"
        case _:
            return str(thing) if not isinstance(thing, Dimension) else thing.name
