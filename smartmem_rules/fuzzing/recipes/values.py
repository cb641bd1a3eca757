"""Shapes and values of drawn tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.records import dataclass

RANKS = (0.06, 0.12, 0.2, 0.24, 0.22, 0.08, 0.04, 0.02, 0.02)
DTYPES = (
    "float32",
    "float16",
    "float64",
    "int64",
    "int32",
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
)
_DTYPE_WEIGHTS = (30, 8, 6, 6, 6, 5, 2, 3, 1, 1, 1, 1)
_SPECIAL = (
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e10, -1e10, 3e38, -3e38, 1e-30, 0.5, -1.0,
    88.8, -104.0, 20.0, -20.0,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large what is drawn becomes.

    Attributes:
        extents: of inputs.
        drawn: elements of an input at most.
        elements: elements of a result at most.
        columns: of the second factor of a product.
        channels: results of a convolution, in each of its groups.
        window: extent of a window at most.
        terms: extents of the axes of an `Einsum`.
        heads: of an attention.
        head_width: elements of a head.
    """

    extents: Sequence[int]
    drawn: int
    elements: int
    columns: Sequence[int]
    channels: Sequence[int]
    window: int
    terms: Sequence[int]
    heads: Sequence[int]
    head_width: Sequence[int]


SMALL = Sizes(
    extents=(1, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 64),
    drawn=1200,
    elements=4096,
    columns=(1, 2, 3, 4, 5, 7, 8, 9, 16, 17),
    channels=(1, 2, 3, 4, 5),
    window=4,
    terms=(1, 2, 3, 5, 8),
    heads=(1, 2, 3),
    head_width=(1, 2, 4, 5, 8),
)
LARGE = Sizes(
    extents=(
        1, 1, 2, 3, 4, 7, 8, 14, 16, 17, 28, 31, 32, 33, 47, 48, 49, 56, 63, 64, 65, 96, 112, 127, 128, 129, 191, 192,
        193, 196, 197, 224, 255, 256, 257, 384, 511, 512, 513, 577, 768, 1000, 1023, 1024, 1025,
        2047, 4097, 16384, 16385, 40_000, 65_537,
    ),
    drawn=80_000,
    elements=300_000,
    columns=(1, 3, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 100, 127, 128, 129, 191, 192, 256, 257, 384),
    channels=(1, 3, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 128),
    window=7,
    terms=(1, 3, 8, 16, 17, 33, 64),
    heads=(1, 2, 3, 4, 8, 12),
    head_width=(8, 16, 31, 32, 33, 40, 64, 80, 128),
)  # fmt: skip
"""Sizes at which kernels have blocks, tiles, split reductions and rests of them."""


def draw_shape(random: np.random.Generator, low: int = 0, high: int = 8, sizes: Sizes = SMALL) -> tuple[int, ...]:
    """Extents 0 (seldom) and 1, primes, powers of two and their neighbours; few elements."""
    weights = np.array(RANKS[low : high + 1])
    rank = low + int(random.choice(len(weights), p=weights / weights.sum()))
    shape: list[int] = []
    for _ in range(rank):
        room = sizes.drawn // max(1, math.prod(shape))
        fitting = [e for e in sizes.extents if e <= room]
        shape.append(int(fitting[int(random.integers(len(fitting)))]))
    random.shuffle(shape)
    if shape and random.random() < 0.015:
        shape[int(random.integers(len(shape)))] = 0
    return tuple(shape)


def draw_dtypes(random: np.random.Generator) -> Sequence[str]:
    """The element types of one model: one to three of them, some more often than others."""
    weights = np.array(_DTYPE_WEIGHTS) / sum(_DTYPE_WEIGHTS)
    drawn = random.choice(DTYPES, size=int(random.integers(1, 4)), p=weights)
    return [str(d) for d in drawn] * 2 + ["float32"]


def draw_values(random: np.random.Generator, shape: tuple[int, ...], dtype: str, special: bool) -> Array:
    """Ordinary values; `special` mixes in what floats can hold besides, and the ends of integers' ranges."""
    if dtype == "bool":
        return np.asarray(random.integers(0, 2, shape), bool)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        low, high = (-8 if kind.kind == "i" else 0), 9
        values = np.asarray(random.integers(low, high, shape), kind)
        if special:
            ends = np.asarray([np.iinfo(kind).min, np.iinfo(kind).max, 0, 1], kind)
            values = np.where(random.random(shape) < 0.1, ends[random.integers(0, 4, shape)], values)
        return np.asarray(values, kind)
    style = random.random()
    if style < 0.6:
        reals = random.standard_normal(shape)
    elif style < 0.8:
        reals = np.asarray(random.integers(-6, 7, shape) / 2.0)
    else:
        reals = random.standard_normal(shape) * 10.0 ** random.integers(-3, 3)
    if special:
        drawn = np.asarray(_SPECIAL)[random.integers(0, len(_SPECIAL), shape)]
        reals = np.where(random.random(shape) < 0.12, drawn, reals)
    with np.errstate(over="ignore"):
        return np.asarray(reals, kind)
