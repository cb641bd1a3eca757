"""Draws the elements of tensors."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from smartmem_rules.guards.constant_elements import at_each_place
from smartmem_rules.language.analyses import Fact
from smartmem_rules.language.syntax import Expression, Reduction
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.tensor.primitives import cast, compute_dtype
from smartmem_rules.tensor.types import NARROW_FLOATS
from smartmem_rules.verification.instances.case import NARROW_NUMBERS, Case, limits_of
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import (
    Array,
    Domain,
    PrimeField,
    Rationals,
    Value,
    exact,
    exact_quotient,
)
from smartmem_rules.verification.semantics.terms import Leaf, leaves

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0, -1.0, 2.5, -3.0, 0.5, 200.0, -200.0, 3e38, -3e38)
MERGING = (
    (3e38, np.inf), (2e38, 3e38), (-2e38, -3e38), (1e-40, 0.0), (1e-40, 3e-40), (1.0, 1.0 + 2.0**-23),
    (-1.0, -1.0 - 2.0**-23), (1e7, 1e7 + 1.0),
)  # fmt: skip
"""Numbers that a sum or product with another one makes the same: which is the greatest hangs on that."""
_MERGING_SHARE = 0.25
"""Of the draws of special values in which all elements are two such numbers, where a side gives integers."""
LARGE = 100.0
"""From here on exponentials, squares and sums may overflow."""
REAL = (0.0, 0.0, 1.0, -1.0, 2.0, -2.0, 2.5, -3.0, 0.5, 3.0)
"""What a rule that is meant over the real numbers is tried with: where one side is undefined, the other is too."""
_BEYOND_SHARE = 0.3
"""Of the draws of what is converted to integers in which some lie beyond those."""
_BEYOND = tuple(sign * v for v in (2.0**31, 3e9, 2.0**32, 2.0**40 + 2.0**18, 2.0**63, 1e20) for sign in (1, -1))
_EXTREME_SHARE = 0.45
_SATURATING_SHARE = 0.3
"""Of the draws of integers of 8 and 16 bits beside floats in which some are the least and the greatest ones: operators
of quantized models saturate."""
_REACHES = (9, 9, 2, 1)
"""Of small integers: short ones stay inside of the tensors that they index."""
_SAME_SHARE = 0.2
"""Of the draws in which one tensor of integers is another one, or lies beside it: comparisons are decided there."""
_LARGEST_NAMED = 1e9
_LARGEST_HALF = float(np.finfo(np.float16).max)
_FEW_SHARE = 0.4
"""Of the draws of special values in which all operands have the same two."""
_FAST = 20.0
_TRUE_SHARES = (0.5, 0.5, 0.5, 0.1, 0.9, 1.0)
"""How many elements of a tensor of truth values are true."""
_NAMED_SHARE = 0.35
"""Of the draws in which some elements are numbers of the rule, or what lies beside them."""
_WHOLE_SHARE = 0.25
"""Of the draws in which some elements are small whole numbers."""


@dataclass(frozen=True)
class Range:
    """What elements are drawn from beside ordinary numbers.

    Attributes:
        literals: the numbers of the rule.
        wide: whether magnitudes from 1e-4 to 1e6 are drawn too: nothing in the rule grows fast.
        converted: whether integers pass through floats and become integers again, so that they need more bits than a
            float has; now and then they are larger than the integers that they become.
        to_integers: whether floats become integers.
        wraps: whether all is computed in integers, which wrap.
        extreme_share: of the draws of such integers in which some are the least, the greatest, powers of two.
        largest: the greatest magnitude of the element type.
        inside: above 0 the bound below which integers lie, as they index tensors or count elements.
    """

    literals: Sequence[float] = ()
    wide: bool = False
    converted: bool = False
    to_integers: bool = False
    wraps: bool = False
    extreme_share: float = _EXTREME_SHARE
    largest: float = math.inf
    inside: int = 0


def draw_values(case: Case, domain: Domain, source: random.Random, drawn: Range | None = None) -> dict[str, Value]:
    """Elements for all leaves of the left side in the domain's own form."""
    drawn = drawn or Range()
    generator = np.random.default_rng(source.getrandbits(32))
    positive = source.random() < 0.5
    found = leaves(case.left)
    # what becomes a float on the way is no larger than floats are exact
    whole = all(leaf.type.dtype not in FLOATS for leaf in found.values())
    values = {name: _draw(leaf, case, domain, generator, positive, drawn, whole) for name, leaf in found.items()}
    _make_neighbours(values, case, generator)
    return values


def _make_neighbours(values: dict[str, Value], case: Case, generator: np.random.Generator) -> None:
    """Make one tensor of integers another one now and then, some of its elements one less or one more."""
    if generator.random() >= _SAME_SHARE:
        return
    free = {
        name: leaf.type
        for name, leaf in leaves(case.left).items()
        if leaf.type.dtype not in (*FLOATS, *NARROW_FLOATS, "bool")
        and name not in case.uniform
        and name not in case.elements
    }
    pairs = [(one, other) for one in free for other in free if one < other and free[one] == free[other]]
    if not pairs:
        return
    one, other = pairs[generator.integers(len(pairs))]
    (least, greatest), array = limits_of(free[one].dtype), np.asarray(values[one][0])
    steps = generator.choice((0, 0, 1, -1), array.shape).astype(array.dtype)
    inside = (array > least) & (array < greatest)
    values[other] = (np.where(inside, array + steps, array).astype(array.dtype),)


def _draw(
    leaf: Leaf,
    case: Case,
    domain: Domain,
    generator: np.random.Generator,
    positive: bool,
    drawn: Range,
    extreme: bool = False,
) -> Value:
    shape, dtype = leaf.type.shape, leaf.type.dtype
    known = given_value(case, leaf, domain)
    if known is not None:
        return known
    if dtype == "bool":
        return (generator.random(shape) < generator.choice(_TRUE_SHARES),)
    if dtype in NARROW_FLOATS:
        return (generator.choice(np.array(NARROW_NUMBERS, compute_dtype(dtype)), shape),)
    if dtype not in FLOATS:
        return (_integers(generator, shape, dtype, drawn, extreme),)
    if dtype == "float16":
        drawn = replace(drawn, largest=_LARGEST_HALF)
    match domain:
        case PrimeField():
            return (generator.integers(1, domain.prime, shape),)
        case Rationals():
            return (_small(generator, shape, positive, drawn),)
        case Bounded():
            values = _floats(generator, shape, positive, drawn)
            return values, domain.slack(values)
        case _:
            return (cast(_floats(generator, shape, positive, drawn), dtype),)


def given_value(case: Case, leaf: Leaf, domain: Domain) -> Value | None:
    """The elements of a constant that an instance decides, in the domain's own form; None for any other tensor."""
    shape, dtype = leaf.type.shape, leaf.type.dtype
    number = case.uniform.get(leaf.name)
    if number is not None:
        return tuple(np.broadcast_to(v, shape) for v in domain.constant(_in_dtype(number, dtype), dtype))
    array = case.elements.get(leaf.name)
    if array is None:
        return None
    if array.size == 0:
        return tuple(np.broadcast_to(v, shape) for v in domain.constant(_in_dtype(0.0, dtype), dtype))
    numbers = np.unique(array)
    parts = [domain.constant(_in_dtype(float(one), dtype), dtype) for one in numbers]
    places = np.searchsorted(numbers, array)
    return tuple(np.stack([part[n] for part in parts])[places] for n in range(len(parts[0])))


def _in_dtype(number: float, dtype: str) -> float | int | bool:
    if dtype == "bool":
        return bool(number)
    return number if dtype in FLOATS else int(number)


def _integers(generator: np.random.Generator, shape: tuple[int, ...], dtype: str, drawn: Range, extreme: bool) -> Array:
    """Small numbers, now and then those at which arithmetic wraps, or that the rule names."""
    (least, greatest), kind = limits_of(dtype), compute_dtype(dtype)
    if drawn.inside:
        return np.asarray(generator.integers(0, drawn.inside, shape).astype(kind))
    reach = int(generator.choice(_REACHES))
    values = np.asarray(generator.integers(max(-reach, least), min(reach, greatest + 1), shape).astype(kind))
    if drawn.converted:
        # more bits than a float of 24 has, and most often few enough for what a conversion back can hold
        most = 63 if generator.random() < _BEYOND_SHARE else 30
        bits = generator.integers(1, min(most, (greatest - least).bit_length() - 1) + 1, shape)
        wide = np.asarray(2.0**bits * generator.uniform(0.5, 1.0, shape), np.int64)
        signs = generator.choice((1, -1) if least < 0 else (1, 1), shape)
        return np.asarray(np.where(generator.random(shape) < 0.8, (wide * signs).astype(kind), values))
    chance = generator.random()
    narrow = greatest - least < 2**16 and chance < _SATURATING_SHARE
    if narrow or (extreme and chance < drawn.extreme_share):
        chosen = generator.choice(_remarkable(least, greatest, kind), shape)
        if chance < drawn.extreme_share / 3:
            chosen = generator.integers(least, greatest, shape, dtype=kind, endpoint=True)
        values = np.where(generator.random(shape) < 0.5, chosen, values)
    whole = [int(n) for n in drawn.literals if n == int(n)]
    named = [n + step for n in whole for step in (0, 1, -1) if least < n + step < greatest]
    if named and generator.random() < _NAMED_SHARE:
        chosen = generator.choice(np.array(named, kind), shape)
        values = np.where(generator.random(shape) < 0.5, chosen, values)
    return np.asarray(values)


@cache
def _remarkable(least: int, greatest: int, kind: str) -> Array:
    """The least and the greatest integer, powers of two and what lies beside them."""
    bits = (greatest - least).bit_length()
    powers = [sign * 2**k + step for k in range(bits) for step in (-1, 0, 1) for sign in (1, -1)]
    ends = [least, greatest, least + 1, greatest - 1]
    return np.array([*ends * 8, *(p for p in powers if least <= p <= greatest)], kind)


def _small(generator: np.random.Generator, shape: tuple[int, ...], positive: bool, drawn: Range) -> Array:
    """Small exact numbers; halves and quarters make rounding to integers visible."""
    values = generator.integers(1 if positive else -9, 10, shape)
    parts = int(generator.choice((1, 1, 2, 4)))
    boxed = np.empty(shape, object)
    if values.size:
        boxed[...] = np.vectorize(lambda v: exact_quotient(int(v), parts), otypes=[object])(values)
    named = _named(generator, shape, drawn)
    if named is None or not values.size:
        return boxed
    chosen, where = named
    return np.asarray(np.where(where, np.vectorize(exact, otypes=[object])(chosen), boxed), object)


def _floats(generator: np.random.Generator, shape: tuple[int, ...], positive: bool, drawn: Range) -> Array:
    values = generator.uniform(0.1, 3.0, shape)
    if not positive:
        values = values * generator.choice([-1.0, 1.0], shape)
    if generator.random() < _WHOLE_SHARE:
        whole = generator.choice((1.0, 2.0, 3.0, 4.0) if positive else (1.0, 2.0, 3.0, -1.0, -2.0, -3.0), shape)
        values = np.where(generator.random(shape) < 0.6, whole, values)
    named = _named(generator, shape, drawn)
    if named is not None:
        values = np.where(named[1], named[0], values)
    return np.asarray(values)


def _named(generator: np.random.Generator, shape: tuple[int, ...], drawn: Range) -> tuple[Array, Array] | None:
    """Numbers of the rule and what lies beside them, or other magnitudes; and where they stand."""
    numbers = [n for n in drawn.literals if abs(n) < _LARGEST_NAMED]
    choices = [v for n in numbers for v in (n, n, -n, n + 1, n - 1, n + 0.5, n * 2, n * 1.25, n * 0.75)]
    if drawn.wide:
        choices += [float(v) for v in generator.choice((1.0, -1.0), 4) * 10.0 ** generator.uniform(-4, 6, 4)]
    else:
        # what grows fast has no value at large numbers
        choices = [v for v in choices if abs(v) <= _FAST]
    choices = [v for v in choices if abs(v) <= drawn.largest]
    if not choices or generator.random() >= _NAMED_SHARE:
        return None
    return np.asarray(generator.choice(np.array(choices), shape)), generator.random(shape) < generator.choice(
        (0.3, 0.7)
    )


def real_values(case: Case, domain: Bounded, source: random.Random, drawn: Range | None = None) -> dict[str, Value]:
    """Ordinary numbers with zeros among them."""
    found = draw_values(case, domain, source, drawn)
    for name, leaf in leaves(case.left).items():
        if leaf.type.dtype in FLOATS and name not in case.uniform and name not in case.elements:
            generator = np.random.default_rng(source.getrandbits(32))
            chosen = generator.random(leaf.type.shape) < source.choice((0.4, 0.6, 1.0))
            values = np.where(chosen, generator.choice(REAL, leaf.type.shape), found[name][0])
            found[name] = values, domain.slack(values)
    return found


def special_choice(relaxes: Collection[str], to_integers: bool = False) -> list[float]:
    """The special values of which a rule speaks. What casts make of them docs/numerics.md says.

    Args:
        to_integers: whether floats become integers, so that some lie beyond those.
    """
    return [v for v in (*SPECIAL, *(_BEYOND if to_integers else ())) if not _excluded(v, relaxes)]


def merging_choice(relaxes: Collection[str]) -> list[tuple[float, ...]]:
    """The pairs of numbers that may become the same, of those of which a rule speaks."""
    return [pair for pair in MERGING if not any(_excluded(v, relaxes) for v in pair)]


def special_values(
    case: Case,
    allowed: Sequence[float],
    source: random.Random,
    facts: Sequence[Fact] = (),
    merging: Sequence[tuple[float, ...]] = (),
) -> dict[str, Value]:
    """Elements in single precision among which are some special ones; `facts` hold of all of them.

    Args:
        merging: pairs of which now and then all special elements are one.
    """
    generator = np.random.default_rng(source.getrandbits(32))
    if merging and source.random() < _MERGING_SHARE:
        allowed = source.choice(merging)
    elif source.random() < _FEW_SHARE:
        allowed = source.sample(list(allowed), min(len(allowed), 2))
    found: dict[str, Value] = {}
    for name, leaf in leaves(case.left).items():
        dtype = leaf.type.dtype
        known = given_value(case, leaf, Domain())
        loop = next((guard.right for guard in facts if guard.tensor == name), None)
        if known is not None and loop is not None and dtype in FLOATS:
            with np.errstate(over="ignore"):
                found[name] = (cast(_special_of_fact(case, name, known[0], loop, allowed, generator), dtype),)
        elif known is not None:
            found[name] = (cast(np.asarray(known[0]), dtype),)
        elif dtype in FLOATS:
            ordinary = _floats(generator, leaf.type.shape, False, Range())
            drawn = generator.choice(allowed, leaf.type.shape if source.random() < 0.7 else ())
            special = generator.random(leaf.type.shape) < source.choice((0.4, 0.6, 1.0))
            with np.errstate(over="ignore"):
                found[name] = (cast(np.where(special, drawn, ordinary), dtype),)
        else:
            found[name] = _draw(leaf, case, Domain(), generator, False, Range())
    return found


def _special_of_fact(
    case: Case, name: str, known: Array, loop: Expression, allowed: Sequence[float], generator: np.random.Generator
) -> Array:
    """Elements of a tensor of which a fact is known, with special ones wherever the fact holds of them."""
    assert isinstance(loop, Reduction)
    drawn = generator.choice(allowed, known.shape)
    holds = at_each_place(loop, case.scope, {name: np.asarray(drawn, np.float64)})
    fits = np.zeros(known.shape, bool) if holds is None else np.broadcast_to(holds, drawn.size).reshape(known.shape)
    return np.where(fits & (generator.random(known.shape) < 0.6), drawn, np.asarray(known, np.float64))


def _excluded(value: float, relaxes: Collection[str]) -> bool:
    if np.isnan(value):
        return "nan" in relaxes
    if abs(value) >= LARGE:
        return "infinities" in relaxes
    return value == 0 and bool(np.signbit(value)) and "signed_zero" in relaxes
