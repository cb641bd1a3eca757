"""Sums of addends: in which order they are added, and what of them is rounded on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, is_float
from smartmem_rules.fuzzing.expected.precisions import Precision

Evaluate = Callable[[Sequence[Array | None]], list[Array]]
"""What computes the results of a node."""
_MOST_UNITS = 8.0
"""How many times as large as expected the roundings of a sum may be."""

_WHOLE = 0.5
"""How many numbers that are whole but for roundings are rounded to whole ones."""
_WHOLE_ULPS = 64.0
"""Units in the last place that a function of several steps may be off."""


def of_either_sign(sums: Array, noise: np.random.Generator) -> Array:
    """Sums whose zeros have a drawn sign: a sum of -0 alone is -0, and 0 behind the 0 that a loop starts with."""
    return np.where(sums == 0, np.copysign(0.0, noise.uniform(-1, 1, sums.shape)), sums) if is_float(sums) else sums


def perhaps_whole(values: Array | None, precision: Precision | None, noise: np.random.Generator) -> Array | None:
    """Numbers that may be rounded to whole ones: exponents, of which a negative number has a power, and states."""
    if values is None or precision is None or values.dtype != np.float64:
        return values
    whole = np.rint(values)
    near = np.abs(values - whole) <= _WHOLE_ULPS * precision.unit * np.maximum(np.abs(values), 1)
    return np.where(near & (noise.random(values.shape) < _WHOLE), whole, values)


def exceeding(runner: NodeRunner, operands: Sequence[Array | None], most: float) -> Array:
    """Where the finite addends of a linear node's sums, all of one sign, exceed the greatest number.

    A factor of the whole sum (`alpha`, one over the number of addends) may come before the sum or after it.
    """
    size = _sizes(runner.precise, operands)
    return size / min(1.0, _factor_of_sum(runner.node, operands, size)) > most


def rounded_on_the_way(node: onnx.NodeProto, evaluate: Evaluate, operands: Sequence[Array | None]) -> Array:
    """By how many units of rounding the sums of a linear node may be off, whatever the order of their addends.

    The roundings of n additions are random and grow with the root of n (Higham and Mary 2019, "A new approach to
    probabilistic rounding error analysis", theorem 2.8), relative to the sizes of all addends together. Equal addends
    are rounded alike: where each of them stands m times, the roundings grow with the root of n m, at most with n.

    Args:
        evaluate: computes the node, in double precision where that can be had.
    """
    size = _sizes(evaluate, operands)
    ones = [np.ones_like(o) if is_float(o) and o is not None else o for o in operands]
    number = np.maximum(np.abs(evaluate(ones)[0].astype(np.float64)) / _factor_of_sum(node, operands, size), 1.0)
    return np.asarray(np.sqrt(number * np.minimum(number, _repetitions(operands))) * size)


def of_infinities(runner: NodeRunner, operands: Sequence[Array | None], result: Array) -> Array:
    """Which sums are not finite because addends are infinite, and not because one is NaN."""
    if not any(o is not None and is_float(o) and np.isinf(o).any() for o in operands):
        return np.zeros(result.shape, bool)
    numbers = [np.where(np.isinf(o), np.sign(o), o) if is_float(o) and o is not None else o for o in operands]
    return ~np.isfinite(result) & ~np.isnan(runner.precise(numbers)[0])


def cancelling_addends(node: onnx.NodeProto, operands: Sequence[Array | None], result: Array) -> Array:
    """Of a normalization the size of what is added and may cancel: mean * scale / deviation, and the bias.

    ONNX Runtime adds that product to the bias before the element's own product comes to it.
    """
    x, scale = operands[0], operands[1]
    assert x is not None and scale is not None  # noqa: PT018
    if node.op_type == "GroupNormalization":  # its largest addends: normalized elements are below the root of a group
        bias = operands[2]
        assert bias is not None
        most = np.max(np.abs(scale), initial=0.0) * np.sqrt(x.size) + np.max(np.abs(bias), initial=0.0)
        return np.full(result.shape, most if np.isfinite(most) else 0.0)
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "InstanceNormalization":
        axes, scale = tuple(range(2, x.ndim)), scale.reshape(-1, *[1] * (x.ndim - 2))
    else:
        axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    largest = np.max(np.abs(x), axis=axes, keepdims=True, initial=0.0)
    deviation = np.sqrt(np.var(x, axis=axes, keepdims=True) + attributes.get("epsilon", 1e-5))
    size = np.broadcast_to(largest * np.abs(scale) / deviation, result.shape)
    if node.op_type == "LayerNormalization" and len(operands) > 2 and operands[2] is not None:
        size = size + np.abs(operands[2])
    return np.where(np.isfinite(size), size, 0.0)


def _sizes(evaluate: Evaluate, operands: Sequence[Array | None]) -> Array:
    """The sums of the addends' magnitudes, infinities and NaN left out."""
    addends = [np.where(np.isfinite(o), np.abs(o), 0) if is_float(o) and o is not None else o for o in operands]
    return np.abs(evaluate(addends)[0].astype(np.float64))


def _repetitions(operands: Sequence[Array | None]) -> float:
    """How often each addend stands among all of them, on average: an addend is a product of the operands' elements."""
    floats = [o for o in operands if o is not None and is_float(o) and o.size]
    return min((o.size / len(np.unique(o)) for o in floats), default=1.0)


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


def same_sums(runner: NodeRunner, operands: Sequence[Array | None], one: Array, other: Array, unit: float) -> bool:
    """Whether the results of a linear node differ by no more than additions round, where all are finite.

    What is left of large addends that cancel has no digit in common with the exact sum.
    """
    finite = np.isfinite(one) & np.isfinite(other)
    if one.shape != other.shape or not finite.all():
        return False
    slack = _MOST_UNITS * unit * rounded_on_the_way(runner.node, runner.precise, operands)
    return slack.shape == one.shape and bool(np.all(np.abs(one - other) <= slack))
