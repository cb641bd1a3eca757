"""Recipes for products whose left factor is quantized when the model runs, as dynamic quantizers write them."""

from __future__ import annotations

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.recipes.builder import MICROSOFT, Builder

_WIDTHS = (1, 3, 8, 16, 20, 33)
_ORDINARY = 1e6
"""Magnitudes up to here: scales of larger ones overflow in a few products."""


def products(b: Builder) -> None:
    """A tensor that is quantized by its range, and one to three products that read it."""
    x = _ordinary(b, 2, 4)
    parts = x and b.add("DynamicQuantizeLinear", [x], 3)
    if not x or not parts:
        return
    for _ in range(b.pick((1, 1, 2, 3))):
        if b.chance(0.15):
            _whole(b, x)
        else:
            _product(b, x, parts)


def recurrence(b: Builder) -> None:
    """An LSTM of integers."""
    batch = b.pick((1, 1, 2, 3))
    hidden, given, length = b.pick((1, 4, 12, 16)), b.pick((1, 3, 8)), b.integer(1, 5)
    way = b.pick(("forward", "reverse", "bidirectional"))
    count = 2 if way == "bidirectional" else 1
    x = b.operand((length, batch, given), "float32")
    numbers = [
        number
        for depth in (given, hidden)
        for number in _weights(b, (count, depth, 4 * hidden), (count, 4 * hidden) if b.chance() else (count,), depth)
    ]
    bias = b.weight((count, 8 * hidden), "float32") if b.chance() else ""
    states = [b.operand((count, batch, hidden), "float32") if b.chance() else "" for _ in range(2)]
    peep = b.weight((count, 3 * hidden), "float32") if b.chance(0.3) else ""
    operands = [x, numbers[0], numbers[3], bias, "", *states, peep, *numbers[1:3], *numbers[4:]]
    b.add(
        "DynamicQuantizeLSTM", operands, 3, MICROSOFT,
        hidden_size=hidden, direction=way, input_forget=int(b.chance(0.2)),
    )  # fmt: skip


def _ordinary(b: Builder, least: int, most: int) -> str | None:
    def fits(a: Array) -> bool:
        return bool(a.size) and bool(np.isfinite(a).all()) and float(np.abs(a).max()) < _ORDINARY

    return b.tensor(("float32",), least, most, fits)


def _product(b: Builder, x: str, parts: list[str]) -> None:
    """An integer product or convolution, a cast, both scales, and most often a bias and a function."""
    shape, (quantized, scale, zero) = b.shape(x), parts
    count = b.pick(_WIDTHS)
    windows = len(shape) == 4 and b.chance(0.7)
    if windows:
        kernel, depthwise = b.pick((1, 3)), b.chance(0.3)
        count = shape[1] if depthwise else count
        inner = (1 if depthwise else shape[1]) * kernel**2
        w, other, none = _weights(b, (count, inner // kernel**2, kernel, kernel), (), inner)
        total = b.one(
            "ConvInteger", [quantized, w, zero, none],
            group=shape[1] if depthwise else 1, pads=[kernel // 2] * 4, strides=[b.pick((1, 2))] * 2,
        )  # fmt: skip
    else:
        w, other, none = _weights(b, (shape[-1], count), (count,) if b.chance() else (), shape[-1])
        total = b.one("MatMulInteger", [quantized, w, zero, none])
    cast = total and b.one("Cast", [total], to=1)
    factor = b.one("Mul", [scale, other])
    made = cast and factor and b.one("Mul", [cast, factor])
    if made and b.chance(0.7):
        made = b.one("Add", [made, b.weight((count, 1, 1) if windows else (count,), "float32")])
    if made and b.chance(0.4):
        b.one(b.pick(("Relu", "Sigmoid", "Tanh", "Erf")), [made])


def _whole(b: Builder, x: str) -> None:
    """The same as one operator, which ONNX Runtime's optimizer writes."""
    depth, count = b.shape(x)[-1], b.pick(_WIDTHS)
    w, scale, zero = _weights(b, (depth, count), (count,) if b.chance() else (), depth)
    bias = [b.weight((count,), "float32")] if b.chance() else []
    b.one("DynamicQuantizeMatMul", [x, w, scale, zero, *bias], MICROSOFT)


def _weights(b: Builder, shape: tuple[int, ...], each: tuple[int, ...], fan: int) -> tuple[str, str, str]:
    """Constant integers, their scales and their zero points."""
    kind = b.pick(("int8", "int8", "uint8"))
    info = np.iinfo(kind)
    scales = (np.asarray(b.random.uniform(0.2, 1.0, each)) / (100 * np.sqrt(max(1, fan)))).astype(np.float32)
    zeros = b.random.integers(-3, 4, each) if b.chance(0.3) else np.zeros(each)
    zeros = zeros + (128 if kind == "uint8" else 0)
    return (
        b.constant(b.random.integers(info.min, info.max + 1, shape), kind),
        b.constant(scales),
        b.constant(zeros, kind),
    )
