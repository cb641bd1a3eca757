"""Recipes for chains of operators between DequantizeLinear and QuantizeLinear, as static quantizers write them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.records import dataclass

_WIDTHS = (1, 3, 4, 7, 8, 16, 20)
_STEPS = (1, 1, 2, 2, 3, 4)
_ODD = 0.12
"""The share of operands that are quantized as no static quantizer does it."""


@dataclass(frozen=True)
class Scaled:
    """A dequantized tensor, with the names of its scale and zero point, which is empty where it has none."""

    name: str
    scale: str
    zero: str


def chain(b: Builder) -> None:
    """A tensor, quantized, and some operators, most of which have a quantizer behind them."""
    x = b.tensor(("float32",), 2, 4, lambda a: bool(a.size) and bool(np.isfinite(a).all()))
    kind = b.pick(("uint8", "int8"))
    now = _requantized(b, x, kind)
    for _ in range(b.pick(_STEPS)):
        if now is None:
            return
        made = b.pick(_OPERATORS)(b, now, kind)
        if made is None:
            continue
        if b.chance(0.15):
            made = b.one(b.pick(("Relu", "Clip", "Sigmoid", "Identity")), [made]) or made
        moved = b.nodes[-1].op_type in ("Transpose", "Reshape", "MaxPool")
        now = _requantized(b, made, kind, now if moved and b.chance(0.8) else None)


def _requantized(b: Builder, x: str, kind: str, like: Scaled | None = None) -> Scaled | None:
    """A tensor behind a quantizer and its inverse; `like` gives it the numbers of another one."""
    if like is None:
        top = float(np.abs(b.array(x)).max(initial=0.0))
        step = (top if 1e-6 < top < 1e6 else 1.0) / 127 * b.pick((1.0, 1.0, 0.5, 2.0))
        scale = b.constant(step if b.chance(0.8) else 2.0 ** np.round(np.log2(step)), np.float32)
        info = np.iinfo(kind)
        zero = "" if kind == "uint8" and b.chance(_ODD) else b.constant(b.integer(info.min, info.max), kind)
        like = Scaled("", scale, zero)
    operands = [like.scale] + [like.zero] * bool(like.zero)
    quantized = b.one("QuantizeLinear", [x, *operands])
    name = quantized and b.one("DequantizeLinear", [quantized, *operands])
    return Scaled(name, like.scale, like.zero) if name else None


def _weights(b: Builder, shape: tuple[int, ...], axis: int, fan: int) -> tuple[str, Array] | None:
    """Constant integers behind DequantizeLinear, and their scales: one, or one for each place along an axis."""
    kind = b.pick(("int8", "int8", "uint8"))
    info = np.iinfo(kind)
    each = (shape[axis],) if b.chance() else ()
    along = axis if not b.chance(_ODD) else b.integer(0, len(shape) - 1)
    each = (shape[along],) if each else ()
    scales = (np.asarray(b.random.uniform(0.2, 1.0, each)) / (100 * np.sqrt(max(1, fan)))).astype(np.float32)
    zeros = b.random.integers(-3, 4, each) if b.chance(0.3) else np.zeros(each)
    zeros = zeros + (128 if kind == "uint8" else 0)
    operands = [
        b.constant(b.random.integers(info.min, info.max + 1, shape), kind),
        b.constant(scales),
        b.constant(zeros, kind),
    ]
    made = b.one("DequantizeLinear", operands, axis=along) if each else b.one("DequantizeLinear", operands)
    return (made, scales) if made else None


def _bias(b: Builder, x: Scaled, scales: Array, count: int) -> list[str]:
    """No bias, one of int32 by the product of both scales, or one that is scaled otherwise."""
    way = b.random.random()
    if way < 0.35:
        return []
    if way < 0.42:
        return [b.weight((count,), "float32")]
    own = (b.array(x.scale).astype(np.float32) * scales).astype(np.float32)
    if own.shape not in ((), (count,)):
        return []
    if way < 0.42 + _ODD:
        own = own * np.float32(b.pick((1.00001, 1.5, 0.5)))
    operands = [b.constant(b.random.integers(-3000, 3000, count), np.int32), b.constant(own, np.float32)]
    if b.chance(0.8):
        operands.append(b.constant(np.zeros(own.shape), np.int32))
    made = b.one("DequantizeLinear", operands, axis=0) if own.ndim else b.one("DequantizeLinear", operands)
    return [made] if made else []


def _convolution(b: Builder, x: Scaled, kind: str) -> str | None:
    shape = b.shape(x.name)
    if len(shape) < 3:
        return _product(b, x, kind)
    channels, kernel = shape[1], b.pick((1, 1, 3, 3, 5))
    depthwise = b.chance(0.3)
    count = channels if depthwise else b.pick(_WIDTHS)
    spatial = tuple(kernel for _ in shape[2:])
    depth = 1 if depthwise else channels
    weights = _weights(b, (count, depth, *spatial), 0, depth * kernel ** len(spatial))
    if weights is None:
        return None
    padding = [b.integer(0, kernel // 2)] * (2 * len(spatial))
    return b.one(
        "Conv", [x.name, weights[0], *_bias(b, x, weights[1], count)],
        group=channels if depthwise else 1, pads=padding, strides=[b.pick((1, 1, 2))] * len(spatial),
    )  # fmt: skip


def _product(b: Builder, x: Scaled, kind: str) -> str | None:
    shape = b.shape(x.name)
    count, turned = b.pick(_WIDTHS), len(shape) == 2 and b.chance(0.4)
    weights = _weights(b, (count, shape[-1]) if turned else (shape[-1], count), 0 if turned else 1, shape[-1])
    if weights is None:
        return None
    if len(shape) == 2 and (turned or b.chance()):
        return b.one("Gemm", [x.name, weights[0], *_bias(b, x, weights[1], count)], transB=int(turned))
    return b.one("MatMul", [x.name, weights[0]])


def _product_of_two(b: Builder, x: Scaled, kind: str) -> str | None:
    rank = len(b.shape(x.name))
    turned = b.one("Transpose", [x.name], perm=[*range(rank - 2), rank - 1, rank - 2])
    other = turned and _requantized(b, turned, kind, x if b.chance(0.7) else None)
    return b.one("MatMul", [x.name, other.name] if b.chance() else [other.name, x.name]) if other else None


def _of_two(b: Builder, x: Scaled, kind: str) -> str | None:
    """A sum or product with another tensor, a constant or the tensor itself."""
    other: str | None = b.beside(x.name)
    if other is not None and (other != x.name or b.chance()) and not b.chance(_ODD):
        finite = b.array(other).dtype == np.float32 and np.isfinite(b.array(other)).all() and b.array(other).size
        beside = _requantized(b, other, kind) if finite else None
        other = beside.name if beside else other
    operator = b.pick(("Add", "Add", "Mul", "Sub"))
    return b.one(operator, [x.name, other] if b.chance() else [other, x.name]) if other else None


def _softmax(b: Builder, x: Scaled, kind: str) -> str | None:
    return b.one("Softmax", [x.name], axis=b.pick((-1, -1, 1)))


def _pooled(b: Builder, x: Scaled, kind: str) -> str | None:
    rank = len(b.shape(x.name))
    if rank < 3:
        return _moved(b, x, kind)
    if b.chance():
        return b.one("GlobalAveragePool", [x.name])
    return b.one("MaxPool", [x.name], kernel_shape=[2] * (rank - 2), strides=[b.pick((1, 2))] * (rank - 2))


def _moved(b: Builder, x: Scaled, kind: str) -> str | None:
    shape = b.shape(x.name)
    if b.chance():
        return b.one("Transpose", [x.name], perm=b.random.permutation(len(shape)).tolist())
    return b.one("Reshape", [x.name, b.ints([shape[0], -1])])


_OPERATORS: tuple[Callable[[Builder, Scaled, str], str | None], ...] = (
    *(_convolution, _convolution, _convolution, _product, _product),
    *(_product_of_two, _of_two, _of_two, _softmax, _pooled, _moved),
)
