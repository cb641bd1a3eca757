"""The elementwise primitives of tensor expressions on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from smartmem_rules.tensor.types import NARROW, NARROW_FLOATS, NARROW_INTEGERS

Array = np.ndarray[Any, np.dtype[Any]]

_ERF_BLOCK = 1 << 20
_WIDENED = {"float16": "float32", "bfloat16": "float32", **dict.fromkeys(NARROW_FLOATS, "float32")}
_BYTES = {name: "uint8" if name.startswith("u") else "int8" for name in NARROW_INTEGERS}


@cache
def storage_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype in which a tensor of this element type is kept."""
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" or name in NARROW else np.dtype(name)


def device_dtype(name: str) -> str:
    """The dtype in which a device keeps elements of this type."""
    return "float32" if name in NARROW_FLOATS else _BYTES.get(name, name)


@cache
def compute_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype in which values of this element type are computed: half precision is widened."""
    return np.dtype(_WIDENED.get(name) or _BYTES.get(name, name))


def constant(value: float | int | bool, name: str) -> Array:
    """A scalar; integers outside the dtype's range wrap."""
    return np.asarray(value).astype(compute_dtype(name))


def cast(values: Array, target: str) -> Array:
    """ONNX Cast: floats are truncated toward zero, integers wrap, anything but zero is true.

    NaN and floats out of range give the lowest int32 (for integers of up to 16 bits, then wrapped) or the lowest int64;
    docs/numerics.md has the table.
    """
    if target == "bool":
        return np.asarray(values != 0)
    if target in _WIDENED:  # by way of single precision, as kernels do
        return values.astype(np.float32).astype(storage_dtype(target)).astype(np.float32)
    if target in NARROW_INTEGERS:
        unsigned = _whole(values, np.int32).astype(np.int64) & (2 ** NARROW_INTEGERS[target] - 1)
        return np.asarray(unsigned.astype(np.int8).astype(storage_dtype(target)).astype(compute_dtype(target)))
    dtype = compute_dtype(target)
    if values.dtype.kind == "f" and dtype == np.uint64:
        high = np.asarray(values - values.dtype.type(2**63))
        above = _whole(high, np.int64).astype(np.uint64) ^ np.uint64(2**63)
        return np.where(values >= 2**63, above, _whole(values, np.int64).astype(np.uint64))
    if values.dtype.kind == "f" and dtype.kind in "iu":
        return _whole(values, np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32).astype(dtype)
    return values.astype(dtype, copy=False)


def from_index(values: Array, target: str) -> Array:
    """Indices as elements: halves are not rounded, because kernels compute with them in single precision."""
    return values.astype(np.float32) if target in _WIDENED else cast(values, target)


def _whole(values: Array, kind: type[np.signedinteger[Any]]) -> Array:
    """Floats truncated to integers; NaN and what is out of range, where machines differ, give the lowest one."""
    if values.dtype.kind != "f":
        return values
    lowest = np.iinfo(kind).min
    inside = (values >= float(lowest)) & (values < -float(lowest))
    return np.where(inside, np.where(inside, values, 0).astype(kind), lowest)


def bitcast(values: Array, source: str, target: str) -> Array:
    """The bits of the values as another dtype of the same width."""
    stored = np.ascontiguousarray(values.astype(storage_dtype(source), copy=False))
    return np.asarray(stored.view(storage_dtype(target)).astype(compute_dtype(target), copy=False)).reshape(
        values.shape
    )


def apply(function: str, arguments: tuple[Array, ...], dtype: str) -> Array:
    """The primitive's value in the compute dtype of `dtype`. Raises KeyError for an unknown primitive."""
    result = PRIMITIVES[function](*arguments)
    return np.asarray(result).astype(compute_dtype(dtype), copy=False)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.true_divide(a, b))
    quotient = np.asarray(np.floor_divide(a, b))
    inexact = (quotient * b != a) & (b != 0)
    correction = np.asarray(inexact & ((a < 0) != (b < 0))).astype(quotient.dtype)
    return np.asarray(quotient + correction)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu" and b.dtype.kind == "i" and np.any(b < 0):
        ones = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(a.dtype)
        return np.where(b < 0, ones, np.power(a, np.maximum(b, 0)))
    return np.asarray(np.power(a, b))


def _floor_divide(a: Array, b: Array) -> Array:
    return np.asarray(np.floor_divide(a, b) if a.dtype.kind in "iu" else np.floor(np.true_divide(a, b)))


def _erf(values: Array) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.shape, np.float64)
    for start in range(0, flat.size, _ERF_BLOCK):
        block = flat[start : start + _ERF_BLOCK]
        result[start : start + block.size] = np.fromiter(map(math.erf, block.tolist()), np.float64, block.size)
    return result.reshape(values.shape)


def _sigmoid(values: Array) -> Array:
    one = values.dtype.type(1)
    return np.asarray(one / (one + np.exp(-values)))


def _fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of single precision, rounded once.

    The product is exact in double precision. The sum is rounded to odd there, so that its second rounding goes the way
    of the exact sum (Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
    """
    product, addend = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    total = np.asarray(product + addend)
    kept = total - product
    lost = (product - (total - kept)) + (addend - kept)
    even = total.view(np.int64) % 2 == 0
    odd = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where(np.isfinite(lost) & (lost != 0) & even, odd, total).astype(np.float32)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: a.dtype.type(1) / np.sqrt(a),
    "recip": lambda a: a.dtype.type(1) / a,
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda a: a if a.dtype.kind in "iu" else np.rint(a),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "min": np.minimum,
    "max": np.maximum,
    "pow": _power,
    "mod": np.mod,
    "fmod": np.fmod,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divide,
    "floordiv": _floor_divide,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "fma": _fused_multiply_add,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}


def reduce(kind: str, values: Array, kept: int, dtype: str) -> Array:
    """Reduce all axes from `kept` on; floats are summed in double precision.

    Products have the precision of kernels: where they overflow on the way, a zero further on gives NaN in both.

    Raises KeyError for an unknown kind.
    """
    axes = tuple(range(kept, values.ndim))
    floating = values.dtype.kind == "f"
    wide = np.float64 if floating else values.dtype
    match kind:
        case "sum":
            result = np.sum(values, axis=axes, dtype=wide)
        case "prod":
            result = np.prod(values, axis=axes, dtype=values.dtype)
        case "any":
            result = np.any(values, axis=axes)
        case "all":
            result = np.all(values, axis=axes)
        case "max" | "min":
            result = _extreme(kind, values, axes)
        case _:
            raise KeyError(kind)
    return np.asarray(result).astype(compute_dtype(dtype), copy=False)


def _extreme(kind: str, values: Array, axes: tuple[int, ...]) -> Any:
    function = np.max if kind == "max" else np.min
    if values.size:
        return function(values, axis=axes)
    if values.dtype.kind == "f":
        bound: Any = -math.inf if kind == "max" else math.inf
    elif values.dtype.kind == "b":
        bound = kind == "min"
    else:
        limits = np.iinfo(values.dtype)
        bound = limits.min if kind == "max" else limits.max
    return function(values, axis=axes, initial=bound)


def contract(a: Array, b: Array, kept: int, extents: tuple[int, ...]) -> Array:
    """sum of a * b over the axes from `kept` on, as one batched matrix product.

    Args:
        a, b: arrays of rank `len(extents)`; an axis that a factor does not depend on has extent 1 there.
        kept: how many leading axes stay.
        extents: the full extents of all axes.

    Returns:
        An array of rank `kept`, in double precision for floats; its axes have extent 1 where neither factor varies.
    """
    rank = len(extents)
    wide = np.dtype(np.float64) if a.dtype.kind == "f" else a.dtype
    factor = 1
    for axis in range(kept, rank):
        if a.shape[axis] == b.shape[axis] == 1:
            factor *= extents[axis]
        elif a.shape[axis] == 1:
            b = np.sum(b, axis=axis, keepdims=True, dtype=wide)
        elif b.shape[axis] == 1:
            a = np.sum(a, axis=axis, keepdims=True, dtype=wide)
    shared = [x for x in range(kept) if a.shape[x] != 1 and b.shape[x] != 1]
    rows = [x for x in range(kept) if x not in shared and a.shape[x] != 1]
    columns = [x for x in range(kept) if x not in shared and b.shape[x] != 1]
    inner = [x for x in range(kept, rank) if a.shape[x] != 1]
    if not rows and not columns:
        total = np.asarray(np.sum(np.multiply(a, b, dtype=wide), axis=tuple(range(kept, rank))))
        return np.asarray(total * wide.type(factor)) if factor != 1 else total
    left = _matrices(a, shared, rows, inner, wide)
    right = _matrices(b, shared, inner, columns, wide)
    product = np.matmul(left, right)
    order = [*shared, *rows, *columns]
    shape = [max(a.shape[x], b.shape[x]) if a.shape[x] and b.shape[x] else 0 for x in order]
    single = [x for x in range(kept) if x not in order]
    product = product.reshape(shape + [1] * len(single))
    order += single
    result = product.transpose([order.index(x) for x in range(kept)])
    return np.asarray(result * wide.type(factor)) if factor != 1 else result


def _matrices(values: Array, shared: list[int], rows: list[int], columns: list[int], dtype: np.dtype[Any]) -> Array:
    used = [*shared, *rows, *columns]
    rest = [x for x in range(values.ndim) if x not in used]
    shape = [math.prod(values.shape[x] for x in group) for group in (shared, rows, columns)]
    return np.ascontiguousarray(values.transpose(used + rest), dtype).reshape(shape)
