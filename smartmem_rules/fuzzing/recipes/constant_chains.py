"""A recipe for products, quotients and sums with constants one after the other, which rules put together.

Some elements of these constants are so large, so small or so undefined that the order of operations decides.
"""

from __future__ import annotations

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import Builder

_EXTREMES = (
    3e38, -3e38, 1e38, 1e30, -1e20, 1e20, 1e15, 1e-15, 1e-20, -1e-30, 1e-38, 1e-38, 1e-40, 0.0, -0.0, np.inf, -np.inf,
    np.nan,
)  # fmt: skip
_ORDINARY_SHARE = 0.45
"""Of the constants."""
_EXTREME_SHARE = 0.15
"""Of the elements of the others, at least one."""
_DTYPES = ("float32", "float32", "float32", "float64", "float16")


def chain(b: Builder) -> None:
    """Two to four operators with a constant each: elementwise ones, products, convolutions, normalizations."""
    x: str | None = b.tensor(_DTYPES, 1, 4, lambda a: a.size > 0)
    if x is not None and not b.array(x).size:  # a new input
        return
    for _ in range(b.integer(2, 4)):
        if x is not None:
            x = _step(b, x)


def _step(b: Builder, x: str) -> str | None:
    way, rank = b.integer(0, 9), b.array(x).ndim
    if way < 2 and rank >= 3:
        return _windowed(b, x)
    if way < 5:
        return _product(b, x)
    operator = b.pick(("Mul", "Mul", "Div", "Div", "Add", "Sub"))
    c = constant(b, _beside(b, b.shape(x)), b.array(x).dtype.name)
    swapped = operator in ("Mul", "Add") and b.chance(0.2)
    return b.one(operator, [c, x] if swapped else [x, c])


def _beside(b: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one number, of a number for each column or channel, or of all."""
    channels = (shape[1], *(1 for _ in shape[2:])) if len(shape) > 2 else ()
    return tuple(b.pick(((), (1,), shape[-1:], channels, shape)))


def _product(b: Builder, x: str) -> str | None:
    shape, dtype = b.shape(x), b.array(x).dtype.name
    w = constant(b, (shape[-1], int(b.pick(b.sizes.columns))), dtype)
    if len(shape) == 2 and b.chance(0.4):
        bias = [constant(b, (b.shape(w)[1],), dtype)] if b.chance(0.7) else []
        return b.one("Gemm", [x, w, *bias], alpha=float(b.pick((1.0, 1.0, 0.5, 1e20))))
    return b.one("MatMul", [x, w])


def _windowed(b: Builder, x: str) -> str | None:
    shape, dtype = b.shape(x), b.array(x).dtype.name
    channels = shape[1]
    if b.chance(0.4):
        variance = b.constant(b.random.uniform(0.3, 2, channels), dtype)
        return b.one("BatchNormalization", [x, *(constant(b, (channels,), dtype) for _ in range(3)), variance])
    kernel = tuple(b.integer(1, min(3, extent)) for extent in shape[2:])
    made = int(b.pick(b.sizes.channels))
    bias = [constant(b, (made,), dtype)] if b.chance() else []
    return b.one("Conv", [x, constant(b, (made, channels, *kernel), dtype), *bias], kernel_shape=list(kernel))


def constant(b: Builder, shape: tuple[int, ...], dtype: str) -> str:
    """Ordinary numbers, or some extreme ones among them; a single number may be extreme itself."""
    values = np.asarray(b.random.standard_normal(shape))
    if not b.chance(_ORDINARY_SHARE) and values.size:
        chosen = b.random.random(shape) < _EXTREME_SHARE
        chosen.reshape(-1)[b.integer(0, values.size - 1)] = True
        values = np.where(chosen, np.asarray(_EXTREMES)[b.random.integers(0, len(_EXTREMES), shape)], values)
    with np.errstate(over="ignore"):
        return b.constant(values, dtype)
