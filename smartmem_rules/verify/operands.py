"""Draws the elements of tensors."""

from __future__ import annotations

import random
from collections.abc import Collection

import numpy as np

from smartmem_rules.tensor.instantiate import FLOATS
from smartmem_rules.verify.case import Case
from smartmem_rules.verify.domains import Array, Bounded, Domain, PrimeField, Rationals, Value
from smartmem_rules.verify.terms import Leaf, leaves

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0, -1.0, 2.5, -3.0, 0.5)


def draw_values(case: Case, domain: Domain, source: random.Random) -> dict[str, Value]:
    """Elements for all leaves of the left side in the domain's own form."""
    generator = np.random.default_rng(source.getrandbits(32))
    positive = source.random() < 0.5
    return {name: _draw(leaf, case, domain, generator, positive) for name, leaf in leaves(case.left).items()}


def _draw(leaf: Leaf, case: Case, domain: Domain, generator: np.random.Generator, positive: bool) -> Value:
    shape, dtype = leaf.type.shape, leaf.type.dtype
    number = case.uniform.get(leaf.name)
    if number is not None:
        value = tuple(np.broadcast_to(v, shape) for v in domain.constant(_in_dtype(number, dtype), dtype))
        return value
    if dtype == "bool":
        return (generator.random(shape) < 0.5,)
    if dtype not in FLOATS:
        return (generator.integers(0 if dtype.startswith("uint") else -9, 10, shape).astype(dtype),)
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


def _small(generator: np.random.Generator, shape: tuple[int, ...], positive: bool) -> Array:
    """Small integers as exact numbers; halves make fractions visible."""
    values = generator.integers(1 if positive else -9, 10, shape)
    boxed = np.empty(shape, object)
    boxed[...] = np.vectorize(int, otypes=[object])(values) if values.size else values
    return boxed


def _floats(generator: np.random.Generator, shape: tuple[int, ...], positive: bool) -> Array:
    values = generator.uniform(0.1, 3.0, shape)
    if not positive:
        values = values * generator.choice([-1.0, 1.0], shape)
    return np.asarray(values)


def special_values(case: Case, relaxes: Collection[str], source: random.Random) -> dict[str, Value]:
    """Elements in single precision among which are those that only floats have, as far as the rule speaks of them."""
    generator = np.random.default_rng(source.getrandbits(32))
    allowed = [v for v in SPECIAL if not _excluded(v, relaxes)]
    found: dict[str, Value] = {}
    for name, leaf in leaves(case.left).items():
        number = case.uniform.get(name)
        dtype = leaf.type.dtype
        if number is not None:
            found[name] = (np.full(leaf.type.shape, _in_dtype(number, dtype), _plain(dtype)),)
        elif dtype in FLOATS:
            ordinary = _floats(generator, leaf.type.shape, False)
            drawn = generator.choice(allowed, leaf.type.shape if source.random() < 0.7 else ())
            found[name] = (
                np.where(generator.random(leaf.type.shape) < source.choice((0.4, 0.6, 1.0)), drawn, ordinary).astype(
                    _plain(dtype)
                ),
            )
        else:
            found[name] = _draw(leaf, case, Domain(), generator, False)
    return found


def _plain(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _excluded(value: float, relaxes: Collection[str]) -> bool:
    if np.isnan(value):
        return "nan" in relaxes
    if np.isinf(value):
        return "infinities" in relaxes
    return value == 0 and bool(np.signbit(value)) and "signed_zero" in relaxes
