"""A recipe for convolutions that CPUs filter in tiles, of data with a few NaN, infinities and large numbers."""

from __future__ import annotations

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.recipes.builder import Builder

_PLANTED = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, -1e30, 1e20, -1e15, 1e10, -0.0)
"""Numbers beside which nothing is filtered: outputs that read an element of 1e5 beside ordinary ones have more rounding
than the judge expects of sums."""
_CHANNELS = (8, 16, 16, 24, 32, 32)
_MOST_PLANTED = 4
_PLANTED_SHARE = 0.8
"""Of the models."""


def convolution(b: Builder) -> None:
    """A function perhaps, 3 x 3 windows with constant weights, and up to three operators behind them."""
    x: str | None = b.input(_data(b))
    operator = b.pick(("Abs", "Neg", "Relu", "", "", ""))
    x = b.one(operator, [x]) if operator and x is not None else x
    made = None if x is None else _windows(b, x)
    if made is None or x is None:
        return
    way = b.integer(0, 5)
    if way == 0:
        _windows(b, x)
    elif way == 1 and b.shape(made) == b.shape(x):
        made = b.one("Add", [made, x])
    elif way == 2:
        channels = int(b.pick(_CHANNELS))
        w = b.constant(b.random.standard_normal((channels, b.shape(made)[1], 1, 1)) / 4, np.float32)
        made = b.one("Conv", [made, w])
    if made is not None and b.chance():
        b.one(b.pick(("Relu", "Sigmoid", "Neg")), [made])


def _data(b: Builder) -> Array:
    """Normal numbers, perhaps only the positive ones of them; a few others in their midst."""
    shape = (b.pick((1, 1, 1, 2)), b.pick(_CHANNELS), b.integer(5, 18), b.integer(5, 18))
    values = b.random.standard_normal(shape).astype(np.float32)
    values = np.maximum(values, 0) if b.chance() else values
    if b.chance(_PLANTED_SHARE):
        for _ in range(b.integer(1, _MOST_PLANTED)):
            values[tuple(b.integer(0, extent - 1) for extent in shape)] = b.pick(_PLANTED)
    return values


def _windows(b: Builder, x: str) -> str | None:
    channels, made = b.shape(x)[1], int(b.pick(_CHANNELS))
    w = b.constant(b.random.standard_normal((made, channels, 3, 3)) / np.sqrt(9 * channels), np.float32)
    bias = [b.constant(b.random.standard_normal(made), np.float32)] if b.chance() else []
    pads = b.pick(([1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 2]))
    return b.one("Conv", [x, w, *bias], kernel_shape=[3, 3], pads=pads)
