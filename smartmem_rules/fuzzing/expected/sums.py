"""Sums of addends: in which order they are added, and what of them is rounded on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, is_float


def of_either_sign(sums: Array, noise: np.random.Generator) -> Array:
    """Sums whose zeros have a drawn sign: a sum of -0 alone is -0, and 0 behind the 0 that a loop starts with."""
    return np.where(sums == 0, np.copysign(0.0, noise.uniform(-1, 1, sums.shape)), sums) if is_float(sums) else sums


def exceeding(runner: NodeRunner, operands: Sequence[Array | None], most: float) -> Array:
    """Where the finite addends of a linear node's sums, all of one sign, exceed the greatest number.

    A factor of the whole sum (`alpha`, one over the number of addends) may come before the sum or after it.
    """
    size = _sizes(runner, operands)
    return size / min(1.0, _factor_of_sum(runner.node, operands, size)) > most


def rounded_on_the_way(runner: NodeRunner, operands: Sequence[Array | None]) -> Array:
    """By how many units of rounding the sums of a linear node may be off, whatever the order of their addends.

    The roundings of n additions are random and grow with the root of n (Higham and Mary 2019, "A new approach to
    probabilistic rounding error analysis", theorem 2.8), relative to the sizes of all addends together.
    """
    size = _sizes(runner, operands)
    ones = [np.ones_like(o) if is_float(o) and o is not None else o for o in operands]
    number = np.abs(runner.precise(ones)[0]) / _factor_of_sum(runner.node, operands, size)
    return np.sqrt(np.maximum(number, 1.0)) * size


def products_with_mean(node: onnx.NodeProto, operands: Sequence[Array | None]) -> Array:
    """Of an instance normalization the size of mean * scale / deviation.

    ONNX Runtime adds that product to the bias before the element's own product comes to it.
    """
    x, scale = operands[0], operands[1]
    assert x is not None and scale is not None  # noqa: PT018
    axes = tuple(range(2, x.ndim))
    epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
    largest = np.max(np.abs(x), axis=axes, keepdims=True, initial=0.0)
    factor = np.abs(scale).reshape(-1, *[1] * len(axes)) / np.sqrt(np.var(x, axis=axes, keepdims=True) + epsilon)
    size = np.broadcast_to(largest * factor, x.shape)
    return np.where(np.isfinite(size), size, 0.0)


def _sizes(runner: NodeRunner, operands: Sequence[Array | None]) -> Array:
    """The sums of the addends' magnitudes, infinities and NaN left out."""
    addends = [np.where(np.isfinite(o), np.abs(o), 0) if is_float(o) and o is not None else o for o in operands]
    return np.abs(runner.precise(addends)[0])


def _factor_of_sum(node: onnx.NodeProto, operands: Sequence[Array | None], result: Array) -> float:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    first = operands[0]
    assert first is not None
    match node.op_type:
        case "Mean":
            return 1 / len(operands)
        case "ReduceMean" | "GlobalAveragePool":
            return max(1, result.size) / max(1, first.size)
        case "AveragePool":
            return 1.0 / float(np.prod(attributes["kernel_shape"]))
    return abs(attributes.get("alpha", 1.0)) or 1.0
