"""Index arithmetic: integer expressions over loop variables, held in a normal form by construction.

An `Index` is a linear combination of atoms plus a constant.  Atoms are loop variables, floor divisions and
moduli by positive constants, table look-ups and elements of integer tensors.  Each variable carries its extent,
so the interval of every expression is known, and the constructors `div` and `mod` drop whatever the intervals
make unnecessary: this is the strength reduction of SmartMem's index comprehension (section 3.2.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True)
class Var:
    """A loop variable that runs over [0, extent)."""

    name: str
    extent: int

    @property
    def interval(self) -> tuple[int, int]:
        return 0, self.extent - 1


@dataclass(frozen=True)
class Div:
    """floor(value / divisor), divisor > 1."""

    value: Index
    divisor: int

    @cached_property
    def interval(self) -> tuple[int, int]:
        low, high = self.value.interval
        return low // self.divisor, high // self.divisor


@dataclass(frozen=True)
class Mod:
    """value mod divisor, never negative."""

    value: Index
    divisor: int

    @property
    def interval(self) -> tuple[int, int]:
        return 0, self.divisor - 1


@dataclass(frozen=True)
class Lookup:
    """table[position]: a constant integer table."""

    table: tuple[int, ...]
    position: Index

    @cached_property
    def interval(self) -> tuple[int, int]:
        return min(self.table), max(self.table)


UNKNOWN_EXTENT = 1 << 40
"""The extent of a gathered value of which nothing is known: it may be negative too."""


@dataclass(frozen=True)
class Gathered:
    """An element of an integer tensor used as an index; with `wrap`, negative values count from the end."""

    tensor: str
    indices: tuple[Index, ...]
    extent: int
    wrap: bool

    @property
    def interval(self) -> tuple[int, int]:
        if self.extent == UNKNOWN_EXTENT and not self.wrap:
            return -UNKNOWN_EXTENT, UNKNOWN_EXTENT
        return 0, max(0, self.extent - 1)


Atom = Var | Div | Mod | Lookup | Gathered


@dataclass(frozen=True)
class Index:
    """constant + sum of coefficient * atom; terms are unique and in a fixed order."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.constant, self.terms))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def interval(self) -> tuple[int, int]:
        """The least and greatest value over all variables' ranges (a bound where atoms depend on each other)."""
        low = high = self.constant
        for atom, coefficient in self.terms:
            a, b = atom.interval
            if coefficient < 0:
                a, b = b, a
            low += coefficient * a
            high += coefficient * b
        return low, high

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @cached_property
    def variables(self) -> frozenset[Var]:
        found: set[Var] = set()
        for atom, _ in self.terms:
            found |= atom_variables(atom)
        return frozenset(found)

    @cached_property
    def gathered(self) -> frozenset[str]:
        """The integer tensors that this index reads."""
        found: set[str] = set()
        for atom, _ in self.terms:
            match atom:
                case Gathered(tensor=tensor, indices=indices):
                    found.add(tensor)
                    for index in indices:
                        found |= index.gathered
                case Div(value=value) | Mod(value=value) | Lookup(position=value):
                    found |= value.gathered
                case Var():
                    pass
        return frozenset(found)

    def __add__(self, other: Index | int) -> Index:
        return add(self, as_index(other))

    def __radd__(self, other: int) -> Index:
        return add(self, as_index(other))

    def __sub__(self, other: Index | int) -> Index:
        return add(self, scale(as_index(other), -1))

    def __mul__(self, factor: int) -> Index:
        return scale(self, factor)

    def __floordiv__(self, divisor: int) -> Index:
        return div(self, divisor)

    def __mod__(self, divisor: int) -> Index:
        return mod(self, divisor)

    def __str__(self) -> str:
        parts = []
        for atom, coefficient in self.terms:
            text = atom_text(atom)
            parts.append(text if coefficient == 1 else f"{coefficient}*{text}")
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


def atom_text(atom: Atom) -> str:
    match atom:
        case Var(name=name):
            return name
        case Div(value=value, divisor=divisor):
            return f"({value}) // {divisor}"
        case Mod(value=value, divisor=divisor):
            return f"({value}) % {divisor}"
        case Lookup(table=table, position=position):
            return f"table{list(table)}[{position}]"
        case Gathered(tensor=tensor, indices=indices):
            return f"{tensor}[{', '.join(map(str, indices))}]"


def atom_variables(atom: Atom) -> frozenset[Var]:
    match atom:
        case Var():
            return frozenset((atom,))
        case Div(value=value) | Mod(value=value) | Lookup(position=value):
            return value.variables
        case Gathered(indices=indices):
            return frozenset().union(*(index.variables for index in indices))


def constant(value: int) -> Index:
    return Index(value)


def variable(var: Var) -> Index:
    """The variable as an index; one of extent 1 is the constant 0."""
    return Index(0) if var.extent == 1 else Index(0, ((var, 1),))


def as_index(value: Index | int) -> Index:
    return value if isinstance(value, Index) else Index(value)


@lru_cache(maxsize=1 << 17)
def _order(atom: Atom) -> tuple[int, str]:
    return (0 if isinstance(atom, Var) else 1, atom_text(atom))


def _build(constant_part: int, terms: dict[Atom, int]) -> Index:
    kept = [(atom, c) for atom, c in terms.items() if c]
    if len(kept) > 1:
        kept.sort(key=lambda item: _order(item[0]))
    return Index(constant_part, tuple(kept))


@lru_cache(maxsize=1 << 17)
def add(left: Index, right: Index) -> Index:
    if not right.terms:
        return Index(left.constant + right.constant, left.terms)
    if not left.terms:
        return Index(left.constant + right.constant, right.terms)
    terms = dict(left.terms)
    for atom, coefficient in right.terms:
        terms[atom] = terms.get(atom, 0) + coefficient
    return _recombine(_build(left.constant + right.constant, terms))


def scale(index: Index, factor: int) -> Index:
    if factor == 0:
        return Index(0)
    return Index(index.constant * factor, tuple((atom, c * factor) for atom, c in index.terms))


def _recombine(index: Index) -> Index:
    """c * (e // c) + e % c = e, also inside a common factor and for the digits of one quotient."""
    terms = dict(index.terms)
    for atom, coefficient in index.terms:
        if not isinstance(atom, Mod):
            continue
        same = _congruent_quotient(atom, coefficient, terms)
        if same is not None:
            remaining = {a: c for a, c in terms.items() if a not in (atom, same)}
            return add(_build(index.constant, remaining), scale(same.value, coefficient))
        quotient = div(atom.value, atom.divisor)
        if len(quotient.terms) != 1 or quotient.terms[0][1] != 1:
            continue
        # value = divisor * quotient + rest, where the quotient may have lost a multiple of the divisor
        carrier = quotient.terms[0][0]
        if terms.get(carrier) != coefficient * atom.divisor:
            continue
        remaining = {a: c for a, c in terms.items() if a not in (atom, carrier)}
        rest = _build(index.constant - coefficient * atom.divisor * quotient.constant, remaining)
        return add(rest, scale(atom.value, coefficient))
    return index


def _congruent_quotient(rest: Mod, coefficient: int, terms: Mapping[Atom, int]) -> Div | None:
    """A term c * (e // d) beside (e' % d), where e and e' differ by multiples of d: their digits are those of e."""
    for atom, factor in terms.items():
        if isinstance(atom, Div) and atom.divisor == rest.divisor and factor == coefficient * rest.divisor:
            difference = add(atom.value, scale(rest.value, -1))
            if difference.constant % rest.divisor == 0 and all(c % rest.divisor == 0 for _, c in difference.terms):
                return atom
    return None


@lru_cache(maxsize=1 << 17)
def div(index: Index, divisor: int) -> Index:
    """floor(index / divisor) for divisor > 0."""
    if divisor <= 0:
        raise ValueError(f"division of an index by {divisor}")
    if divisor == 1:
        return index
    whole: dict[Atom, int] = {}
    rest: dict[Atom, int] = {}
    for atom, coefficient in index.terms:
        quotient, remainder = divmod(coefficient, divisor)
        if remainder == 0:
            whole[atom] = quotient
        else:
            rest[atom] = coefficient
    whole_constant, rest_constant = divmod(index.constant, divisor)
    outer = _build(whole_constant, whole)
    inner = _build(rest_constant, rest)
    low, high = inner.interval
    if low // divisor == high // divisor:
        return add(outer, Index(low // divisor))
    return add(outer, _div_atom(inner, divisor))


def _div_atom(inner: Index, divisor: int) -> Index:
    factor = math.gcd(divisor, *(c for _, c in inner.terms))
    if factor > 1:
        # every term is a multiple of the factor, so the constant's rest never carries
        inner = Index(inner.constant // factor, tuple((a, c // factor) for a, c in inner.terms))
        divisor //= factor
        if divisor == 1:
            return inner
        return div(inner, divisor)
    split = _split_low(inner, divisor)
    if split is not None:
        return split
    if len(inner.terms) == 1 and inner.constant == 0:
        atom, coefficient = inner.terms[0]
        if coefficient == 1 and isinstance(atom, Div):
            return div(atom.value, atom.divisor * divisor)
        if coefficient == 1 and isinstance(atom, Mod) and atom.divisor % divisor == 0:
            # (e % (c*d)) // d = (e // d) % c
            return mod(div(atom.value, divisor), atom.divisor // divisor)
    return Index(0, ((Div(inner, divisor), 1),))


def _split_low(inner: Index, divisor: int) -> Index | None:
    """(g*a + b) // d = a // (d/g) where g divides d and 0 <= b < g."""
    factors = {math.gcd(c, divisor) for _, c in inner.terms}
    for factor in sorted(factors, reverse=True):
        if factor <= 1:
            continue
        high = tuple((a, c) for a, c in inner.terms if c % factor == 0)
        low = tuple((a, c) for a, c in inner.terms if c % factor)
        low_index = Index(inner.constant % factor, low)
        least, greatest = low_index.interval
        if least >= 0 and greatest < factor:
            reduced = Index(inner.constant // factor, tuple((a, c // factor) for a, c in high))
            return div(reduced, divisor // factor)
    return None


@lru_cache(maxsize=1 << 17)
def mod(index: Index, divisor: int) -> Index:
    """index mod divisor for divisor > 0; the result is never negative."""
    if divisor <= 0:
        raise ValueError(f"index modulo {divisor}")
    if divisor == 1:
        return Index(0)
    low, high = index.interval
    if low // divisor == high // divisor:
        return add(index, Index(-(low // divisor) * divisor))
    index = _reduce_modulo(index, divisor)
    low, high = index.interval
    if low // divisor == high // divisor:
        return add(index, Index(-(low // divisor) * divisor))
    factor = math.gcd(divisor, *(c for _, c in index.terms))
    if factor > 1:
        inner = Index(index.constant // factor, tuple((a, c // factor) for a, c in index.terms))
        return add(scale(mod(inner, divisor // factor), factor), Index(index.constant % factor))
    split = _split_mod(index, divisor)
    if split is not None:
        return split
    return Index(0, ((Mod(index, divisor), 1),))


def _split_mod(index: Index, divisor: int) -> Index | None:
    """(g*a + b) % d = g * (a % (d/g)) + b where g divides d and 0 <= b < g."""
    factors = {math.gcd(c, divisor) for _, c in index.terms}
    for factor in sorted(factors, reverse=True):
        if factor <= 1:
            continue
        low = Index(index.constant % factor, tuple((a, c) for a, c in index.terms if c % factor))
        least, greatest = low.interval
        if least >= 0 and greatest < factor:
            high = Index(index.constant // factor, tuple((a, c // factor) for a, c in index.terms if c % factor == 0))
            return add(scale(mod(high, divisor // factor), factor), low)
    return None


def _reduce_modulo(index: Index, divisor: int) -> Index:
    """Drop what is a multiple of the divisor and open inner moduli that it divides."""
    terms: dict[Atom, int] = {}
    opened = Index(0)
    for atom, coefficient in index.terms:
        if coefficient % divisor == 0:
            continue
        if isinstance(atom, Mod) and (coefficient * atom.divisor) % divisor == 0:
            opened = add(opened, scale(atom.value, coefficient))
            continue
        if isinstance(atom, Div):
            value = _open_below(atom, coefficient, divisor)
            if value != atom.value:
                opened = add(opened, scale(div(value, atom.divisor), coefficient))
                continue
        coefficient %= divisor
        terms[atom] = terms.get(atom, 0) + coefficient
    result = _build(index.constant % divisor, terms)
    if opened.terms or opened.constant:
        # what was opened may hold further multiples of the divisor
        return _reduce_modulo(add(result, opened), divisor)
    # a coefficient just below the divisor stands for a small negative one; take the form with the narrower interval
    negative = Index(result.constant, tuple((a, c - divisor if c > divisor // 2 else c) for a, c in result.terms))
    return negative if _width(negative) < _width(result) else result


def _open_below(atom: Div, coefficient: int, divisor: int) -> Index:
    """The value of a division without moduli whose removal changes coefficient * atom by multiples of the divisor."""
    value = atom.value
    for inner, factor in atom.value.terms:
        if isinstance(inner, Mod):
            carry, rest = divmod(factor * inner.divisor, atom.divisor)
            if rest == 0 and carry * coefficient % divisor == 0:
                value = add(value, add(scale(inner.value, factor), Index(0, ((inner, -factor),))))
    return value


def _width(index: Index) -> int:
    low, high = index.interval
    return high - low
