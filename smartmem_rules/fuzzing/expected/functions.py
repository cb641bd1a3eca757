"""Operators in double precision, without the cancellation that other implementations have.

ONNX Runtime computes Softplus as log(1 + exp(x)), Elu and Selu as exp(x) - 1 and Sigmoid as 0 below -18, in double
precision, too: of their results for small or very negative numbers no digit is right. ONNX's evaluator takes 1 + erf(x)
in Gelu, and the 1/6 of ONNX's function for HardSwish is in single precision. These are written down a second time,
apart from the rule files, which they check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.conditions import attribute

Function = Callable[[onnx.NodeProto, Array], Array]


def _elementwise(function: Callable[[float], float]) -> Function:
    vectorized = np.vectorize(function, otypes=[np.float64])
    return lambda node, x: np.asarray(vectorized(x)).reshape(x.shape)


def _number(node: onnx.NodeProto, name: str, default: float) -> float:
    value = attribute(node, name, float(np.float32(default)))  # attributes are in single precision, defaults too
    assert isinstance(value, float)
    return value


def _sigmoid(node: onnx.NodeProto, x: Array) -> Array:
    return np.asarray(np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))))


def _softplus(node: onnx.NodeProto, x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def _mish(node: onnx.NodeProto, x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0, x)))


def _elu(node: onnx.NodeProto, x: Array) -> Array:
    return np.asarray(np.where(x < 0, _number(node, "alpha", 1.0) * np.expm1(x), x))


def _selu(node: onnx.NodeProto, x: Array) -> Array:
    alpha, gamma = _number(node, "alpha", 1.67326319217681884765625), _number(node, "gamma", 1.05070102214813232421875)
    return np.asarray(gamma * np.where(x < 0, alpha * np.expm1(x), x))


def _celu(node: onnx.NodeProto, x: Array) -> Array:
    alpha = _number(node, "alpha", 1.0)
    return np.asarray(np.where(x < 0, alpha * np.expm1(x / alpha), x))


_normal = _elementwise(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))


def _gelu(node: onnx.NodeProto, x: Array) -> Array:
    if attribute(node, "approximate", b"none") != b"none":
        return np.asarray(x * _sigmoid(node, 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return np.asarray(x * _normal(node, x))


def _hard_swish(node: onnx.NodeProto, x: Array) -> Array:
    return np.asarray(x * np.clip(x / 6 + 0.5, 0, 1))


def _lrn(node: onnx.NodeProto, x: Array) -> Array:
    size, channels = attribute(node, "size", 1), x.shape[1]
    assert isinstance(size, int)
    squares = np.zeros_like(x)
    for channel in range(channels):
        near = x[:, max(0, channel - (size - 1) // 2) : channel + size // 2 + 1]
        squares[:, channel] = np.sum(near * near, axis=1)
    scale = _number(node, "bias", 1.0) + _number(node, "alpha", 0.0001) / size * squares
    return np.asarray(x / scale ** _number(node, "beta", 0.75))


FUNCTIONS: Mapping[str, Function] = {
    "Celu": _celu,
    "Elu": _elu,
    "Erf": _elementwise(math.erf),
    "Gelu": _gelu,
    "HardSwish": _hard_swish,
    "LRN": _lrn,
    "Mish": _mish,
    "Selu": _selu,
    "Sigmoid": _sigmoid,
    "Softplus": _softplus,
}
"""By the names of ONNX's own operators."""
