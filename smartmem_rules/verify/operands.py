"""Draws the elements of tensors."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import numpy as np

from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.verify.case import Case
from smartmem_rules.verify.domains import Array, Bounded, Domain, PrimeField, Rationals, Value, exact_quotient
from smartmem_rules.verify.terms import Leaf, leaves

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0, -1.0, 2.5, -3.0, 0.5, 200.0, -200.0, 3e38, -3e38)
LARGE = 100.0
"""From here on exponentials, squares and sums may overflow."""
REAL = (0.0, 0.0, 1.0, -1.0, 2.5, -3.0, 0.5)
"""What a rule that is meant over the real numbers is tried with: where one side is undefined, the other is too."""
_EXTREME_SHARE = 0.15


def draw_values(case: Case, domain: Domain, source: random.Random) -> dict[str, Value]:
    """Elements for all leaves of the left side in the domain's own form."""
    generator = np.random.default_rng(source.getrandbits(32))
    positive = source.random() < 0.5
    found = leaves(case.left)
    # what becomes a float on the way is no larger than floats are exact
    whole = all(leaf.type.dtype not in FLOATS for leaf in found.values())
    return {name: _draw(leaf, case, domain, generator, positive, whole) for name, leaf in found.items()}


def _draw(
    leaf: Leaf, case: Case, domain: Domain, generator: np.random.Generator, positive: bool, extreme: bool = False
) -> Value:
    shape, dtype = leaf.type.shape, leaf.type.dtype
    number = case.uniform.get(leaf.name)
    if number is not None:
        value = tuple(np.broadcast_to(v, shape) for v in domain.constant(_in_dtype(number, dtype), dtype))
        return value
    if dtype == "bool":
        return (generator.random(shape) < 0.5,)
    if dtype not in FLOATS:
        return (_integers(generator, shape, dtype, extreme),)
    match domain:
        case PrimeField():
            return (generator.integers(1, domain.prime, shape),)
        case Rationals():
            return (_small(generator, shape, positive),)
        case Bounded():
            values = _floats(generator, shape, positive)
            return values, domain.slack(values)
        case _:
            return (_floats(generator, shape, positive).astype("float32" if dtype == "bfloat16" else dtype),)


def _in_dtype(number: float, dtype: str) -> float | int | bool:
    if dtype == "bool":
        return bool(number)
    return number if dtype in FLOATS else int(number)


def _integers(generator: np.random.Generator, shape: tuple[int, ...], dtype: str, extreme: bool) -> Array:
    """Small numbers, now and then those at which arithmetic wraps."""
    values = np.asarray(generator.integers(0 if dtype.startswith("uint") else -9, 10, shape).astype(dtype))
    if extreme and generator.random() < _EXTREME_SHARE:
        limits = np.iinfo(np.dtype(dtype))
        drawn = generator.choice(np.array([limits.min, limits.max], dtype), shape)
        values = np.where(generator.random(shape) < 0.5, drawn, values)
    return values


def _small(generator: np.random.Generator, shape: tuple[int, ...], positive: bool) -> Array:
    """Small exact numbers; halves and quarters make rounding to integers visible."""
    values = generator.integers(1 if positive else -9, 10, shape)
    parts = int(generator.choice((1, 1, 2, 4)))
    boxed = np.empty(shape, object)
    if values.size:
        boxed[...] = np.vectorize(lambda v: exact_quotient(int(v), parts), otypes=[object])(values)
    return boxed


def _floats(generator: np.random.Generator, shape: tuple[int, ...], positive: bool) -> Array:
    values = generator.uniform(0.1, 3.0, shape)
    if not positive:
        values = values * generator.choice([-1.0, 1.0], shape)
    return np.asarray(values)


def real_values(case: Case, domain: Bounded, source: random.Random) -> dict[str, Value]:
    """Ordinary numbers with zeros among them."""
    found = draw_values(case, domain, source)
    for name, leaf in leaves(case.left).items():
        if leaf.type.dtype in FLOATS and name not in case.uniform:
            generator = np.random.default_rng(source.getrandbits(32))
            chosen = generator.random(leaf.type.shape) < source.choice((0.4, 0.6, 1.0))
            values = np.where(chosen, generator.choice(REAL, leaf.type.shape), found[name][0])
            found[name] = values, domain.slack(values)
    return found


def special_choice(relaxes: Collection[str], finite: bool) -> list[float]:
    """The special values of which a rule speaks; `finite` leaves out what no integer is made of."""
    return [v for v in SPECIAL if not _excluded(v, relaxes) and not (finite and not abs(v) < LARGE)]


def special_values(case: Case, allowed: Sequence[float], source: random.Random) -> dict[str, Value]:
    """Elements in single precision among which are some special ones."""
    generator = np.random.default_rng(source.getrandbits(32))
    found: dict[str, Value] = {}
    for name, leaf in leaves(case.left).items():
        number = case.uniform.get(name)
        dtype = leaf.type.dtype
        if number is not None:
            found[name] = (np.full(leaf.type.shape, _in_dtype(number, dtype), _plain(dtype)),)
        elif dtype in FLOATS:
            ordinary = _floats(generator, leaf.type.shape, False)
            drawn = generator.choice(allowed, leaf.type.shape if source.random() < 0.7 else ())
            special = generator.random(leaf.type.shape) < source.choice((0.4, 0.6, 1.0))
            with np.errstate(over="ignore"):
                found[name] = (np.where(special, drawn, ordinary).astype(_plain(dtype)),)
        else:
            found[name] = _draw(leaf, case, Domain(), generator, False)
    return found


def _plain(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _excluded(value: float, relaxes: Collection[str]) -> bool:
    if np.isnan(value):
        return "nan" in relaxes
    if abs(value) >= LARGE:
        return "infinities" in relaxes
    return value == 0 and bool(np.signbit(value)) and "signed_zero" in relaxes
