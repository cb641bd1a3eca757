"""Index arithmetic: integer expressions over loop variables, held in a normal form by construction.

An `Index` is a linear combination of atoms plus a constant.  Atoms are loop variables, floor divisions and
moduli by positive constants, table look-ups and elements of integer tensors.  Each variable carries its extent,
so the interval of every expression is known, and the constructors `div` and `mod` drop whatever the intervals
make unnecessary: this is the strength reduction of SmartMem's index comprehension (section 3.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from smartmem_rules.records import unguarded
from smartmem_rules.tensor.atoms import Atom, Div, Mod, Var, without_hash
from smartmem_rules.tensor.division import gcd, split_multiple
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.printer import with_sign
from smartmem_rules.tensor.ranges import (
    bounds,
    can_divide,
    cannot_divide,
    largest,
    several,
    smallest,
    surely_at_most,
    surely_below,
)


@unguarded(frozen=True)
class Index:
    """constant + sum of coefficient * atom; terms are unique and in a fixed order."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()

    @lazy
    def _hash(self) -> int:
        return hash((self.constant, self.terms))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> object:
        return without_hash(self)

    @lazy
    def size(self) -> int:
        """How many atoms it has, those inside of atoms included."""
        return sum(atom.size for atom, _ in self.terms)

    @lazy
    def interval(self) -> tuple[int, int]:
        """The least and greatest value over all variables' ranges (a bound where atoms depend on each other)."""
        low = high = self.constant
        for atom, coefficient in self.terms:
            a, b = _product_interval(coefficient, atom.interval)
            low += a
            high += b
        return low, high

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def atom(self) -> Atom | None:
        """The atom that the index is, None where it is more or less than one."""
        sole = self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1
        return self.terms[0][0] if sole else None

    @property
    def loop(self) -> Var | None:
        """The loop variable that the index is, None for any other."""
        atom = self.atom
        return atom if isinstance(atom, Var) else None

    def is_multiple_of(self, number: int) -> bool:
        """Whether it is one at all values of its atoms."""
        return self.constant % number == 0 and all(coefficient % number == 0 for _, coefficient in self.terms)

    @lazy
    def is_open(self) -> bool:
        """Whether an open extent occurs in the index."""
        return is_symbolic(self.constant) or any(is_symbolic(c) or atom.is_open for atom, c in self.terms)

    @lazy
    def variables(self) -> frozenset[Var]:
        return frozenset().union(*(atom.variables for atom, _ in self.terms))

    @lazy
    def gathered(self) -> frozenset[str]:
        """The integer tensors that this index reads."""
        return frozenset().union(*(atom.gathered for atom, _ in self.terms))

    @property
    def sort_text(self) -> str:
        """What the order of terms goes by: stable, and not to be read."""
        parts = [atom.sort_text if c == 1 else f"{c}*{atom.sort_text}" for atom, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

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
        text = ""
        for atom, coefficient in self.terms:
            text = with_sign(text, coefficient, str(atom), isinstance(atom, Div | Mod))
        return with_sign(text, self.constant) if self.constant or not text else text


def _product_interval(factor: int, interval: tuple[int, int]) -> tuple[int, int]:
    """The least and greatest product with a value of the interval; where the factor's sign is open, numbers."""
    low, high = interval
    if surely_at_most(0, factor):
        return factor * low, factor * high
    if surely_at_most(factor, 0):
        return factor * high, factor * low
    corners = [c * v for c in bounds(factor) for v in (smallest(low), largest(high))]
    return min(corners), max(corners)


def constant(value: int) -> Index:
    return Index(value)


def variable(var: Var) -> Index:
    """The variable as an index; one of extent 1 is the constant 0."""
    return Index(0) if var.extent == 1 else Index(0, ((var, 1),))


def as_index(value: Index | int) -> Index:
    return value if isinstance(value, Index) else Index(value)


@lru_cache(maxsize=1 << 17)
def _order(atom: Atom) -> tuple[int, str]:
    return (0 if isinstance(atom, Var) else 1, atom.sort_text)


def collected(constant_part: int, terms: dict[Atom, int]) -> Index:
    """The index of these terms in their order, digits that belong together left apart."""
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
    return _recombine(collected(left.constant + right.constant, terms))


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
            return add(collected(index.constant, remaining), scale(same.value, coefficient))
        quotient = div(atom.value, atom.divisor)
        if len(quotient.terms) != 1 or quotient.terms[0][1] != 1:
            continue
        # value = divisor * quotient + rest, where the quotient may have lost a multiple of the divisor
        carrier = quotient.terms[0][0]
        if terms.get(carrier) != coefficient * atom.divisor:
            continue
        remaining = {a: c for a, c in terms.items() if a not in (atom, carrier)}
        rest = collected(index.constant - coefficient * atom.divisor * quotient.constant, remaining)
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
    if cannot_divide(divisor):
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
    whole_constant, rest_constant = split_multiple(index.constant, divisor)
    outer = collected(whole_constant, whole)
    inner = collected(rest_constant, rest)
    low, high = inner.interval
    if low // divisor == high // divisor:
        return add(outer, Index(low // divisor))
    return add(outer, _div_atom(inner, divisor))


def _div_atom(inner: Index, divisor: int) -> Index:
    factor = gcd(divisor, *(c for _, c in inner.terms))
    if several(factor):
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
    for factor in sorted(_common_factors(inner, divisor), key=largest, reverse=True):
        if not several(factor):
            continue
        high = tuple((a, c) for a, c in inner.terms if c % factor == 0)
        low = tuple((a, c) for a, c in inner.terms if c % factor)
        low_index = Index(inner.constant % factor, low)
        least, greatest = low_index.interval
        if surely_at_most(0, least) and surely_below(greatest, factor):
            reduced = Index(inner.constant // factor, tuple((a, c // factor) for a, c in high))
            return div(reduced, divisor // factor)
    return None


def _common_factors(index: Index, divisor: int) -> set[int]:
    """What divides the divisor and some coefficient: of extents what all of their terms have, or the coefficient."""
    found = {gcd(c, divisor) for _, c in index.terms}
    return found | {c for _, c in index.terms if is_symbolic(c) and can_divide(c) and divisor % c == 0}


@lru_cache(maxsize=1 << 17)
def mod(index: Index, divisor: int) -> Index:
    """index mod divisor for divisor > 0; the result is never negative."""
    if cannot_divide(divisor):
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
    factor = gcd(divisor, *(c for _, c in index.terms))
    if several(factor):
        inner = Index(index.constant // factor, tuple((a, c // factor) for a, c in index.terms))
        return add(scale(mod(inner, divisor // factor), factor), Index(index.constant % factor))
    split = _split_mod(index, divisor)
    if split is not None:
        return split
    return Index(0, ((Mod(index, divisor), 1),))


def _split_mod(index: Index, divisor: int) -> Index | None:
    """(g*a + b) % d = g * (a % (d/g)) + b where g divides d and 0 <= b < g."""
    for factor in sorted(_common_factors(index, divisor), key=largest, reverse=True):
        if not several(factor):
            continue
        low = Index(index.constant % factor, tuple((a, c) for a, c in index.terms if c % factor))
        least, greatest = low.interval
        if surely_at_most(0, least) and surely_below(greatest, factor):
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
        coefficient = split_multiple(coefficient, divisor)[1]
        terms[atom] = terms.get(atom, 0) + coefficient
    result = collected(split_multiple(index.constant, divisor)[1], terms)
    if opened.terms or opened.constant:
        # what was opened may hold further multiples of the divisor
        return _reduce_modulo(add(result, opened), divisor)
    if is_symbolic(divisor) or any(is_symbolic(c) for c in terms.values()):
        return result
    # a coefficient just below the divisor stands for a small negative one; take the form with the narrower interval
    negative = Index(result.constant, tuple((a, c - divisor if c > divisor // 2 else c) for a, c in result.terms))
    return negative if surely_below(_width(negative), _width(result)) else result


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
