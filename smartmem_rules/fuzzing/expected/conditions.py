"""Conditions under which a node's results have no reference: what of its attributes and operands makes it so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.runtime.reference import fills_memory

Operands = Sequence[Array | None]
_DOUBLE = 2.0**53
"""The least size at which doubles do not hold each integer."""


def attribute(node: onnx.NodeProto, name: str, default: object = None) -> object:
    """The value of an attribute."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def no_variance(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    axes = attribute(node, "axes", [0, 2, 3])
    assert x is not None and isinstance(axes, list)  # noqa: PT018
    with np.errstate(all="ignore"):
        return bool(x.size and np.any(~(np.var(x.astype(np.float64), axis=tuple(axes)) > 1e-6)))


def far_from_zero(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.ndim < 3 or not x.size:
        return False
    with np.errstate(all="ignore"):
        axes = tuple(range(2, x.ndim))
        spread = np.sqrt(np.var(x.astype(np.float64), axis=axes) + 1e-5)
        return bool(np.any(np.abs(x.astype(np.float64)).max(axis=axes) > 1e3 * spread))


def not_finite(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(o is not None and o.dtype.kind == "f" and not np.isfinite(o).all() for o in operands)


def not_a_number(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(o is not None and o.dtype.kind == "f" and np.isnan(o).any() for o in operands)


def empty(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].size == 0


def no_axes_given(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether the second operand is a list of axes without an axis, which is not the same as no list."""
    return len(operands) > 1 and operands[1] is not None and operands[1].size == 0


def near_each_other(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether two rows differ by less than a thousandth of their lengths."""
    if len(operands) < 2 or operands[0] is None or operands[1] is None:
        return False
    with np.errstate(all="ignore"):
        one, other = operands[0].astype(np.float64), operands[1].astype(np.float64)
        if one.shape[-1] != other.shape[-1]:
            return False
        apart = np.sum((one[:, None] - other[None]) ** 2, axis=-1)
        lengths = np.sum(one**2, axis=-1)[:, None] + np.sum(other**2, axis=-1)[None]
        return bool(np.any(apart < 1e-6 * lengths))


def singular(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether a matrix has no inverse, or one whose every digit hangs on roundings of single precision."""
    x = operands[0]
    if x is None or x.ndim < 2 or not x.size:
        return False
    with np.errstate(all="ignore"):
        return not bool(np.all(np.linalg.cond(x.astype(np.float64)) < 1e7))


def range_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and bool(x.size) and not bool(np.abs(x).max() < 1e37)


def backward_to_greatest(node: onnx.NodeProto, operands: Operands) -> bool:
    ends, steps = operands[2] if len(operands) > 2 else None, operands[4] if len(operands) > 4 else None
    return ends is not None and steps is not None and bool(np.any((steps < 0) & (ends >= 2**31 - 1)))


def infinite_without_bound(node: onnx.NodeProto, operands: Operands) -> bool:
    bounds = [operands[k] if len(operands) > k else None for k in (1, 2)]
    return any(b is None for b in bounds) and not_finite(node, operands[:1])


def integers_overflow(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.dtype.kind not in "iu" or not x.size:
        return False
    sizes = np.abs(x.astype(np.float64))
    total = float(np.prod(np.maximum(sizes, 1))) if node.op_type == "ReduceProd" else float((sizes**2).sum())
    return total >= 2.0 ** min(52, 8 * x.dtype.itemsize - 1)


def products_leave_range(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.dtype.kind != "f" or not x.size:
        return False
    sizes = np.log2(np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64))
    return float(np.maximum(sizes, 0).sum()) > 127 or float(np.minimum(sizes, 0).sum()) < -126


def go_together(*operands: Array) -> bool:
    """Whether the shapes broadcast; the node is invalid where they do not, and every reference refuses it."""
    try:
        np.broadcast_shapes(*(operand.shape for operand in operands))
    except ValueError:
        return False
    return True


def power_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    base, exponent = operands[0], operands[1]
    if base is None or exponent is None or base.dtype.kind not in "iu":
        return False
    if not go_together(base, exponent):
        return False
    with np.errstate(all="ignore"):
        powers = np.abs(np.power(base.astype(np.float64), exponent.astype(np.float64)))
    return not bool(np.all(powers < 2.0 ** (8 * base.dtype.itemsize - 1)))


def far_away(node: onnx.NodeProto, operands: Operands) -> bool:
    x, places = operands[0], operands[1]
    if x is None or places is None or not places.size:
        return False
    far = np.abs(places.astype(np.float64)) * max(x.shape[2:], default=1)
    return bool(np.any(np.isfinite(far) & (far >= 2.0**24)))


def infinite_parameters(node: onnx.NodeProto, operands: Operands) -> bool:
    return not_finite(node, operands[1:])


def difference_from_mean_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    x, mean = operands[0], operands[3]
    if x is None or mean is None or not x.size or not mean.size:
        return False
    with np.errstate(all="ignore"):
        most = np.abs(x.astype(np.float64)).max() + np.abs(mean.astype(np.float64)).max()
    return not bool(most <= np.finfo(np.float32).max)


def variance_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and x.size > 0 and x.dtype.name != "float16" and bool(np.nanmax(np.abs(x)) > 1e18)


def sum_of_squares_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(variance_overflows(node, [x]) for x in operands if x is not None and x.dtype.kind == "f")


def even_size(node: onnx.NodeProto, operands: Operands) -> bool:
    size = attribute(node, "size", 1)
    return isinstance(size, int) and size % 2 == 0


def policy_of_some_axes(node: onnx.NodeProto, operands: Operands) -> bool:
    keeps = attribute(node, "keep_aspect_ratio_policy", b"stretch") != b"stretch"
    return keeps and attribute(node, "axes") is not None


def corners_of_one_element(node: onnx.NodeProto, operands: Operands) -> bool:
    size = operands[1]
    return attribute(node, "align_corners", 0) == 1 and size is not None and bool(np.any(size[2:] == 1))


def no_spatial_axes(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].ndim < 3


def lengths_outside(node: onnx.NodeProto, operands: Operands) -> bool:
    x, lengths = operands[0], operands[1]
    time = attribute(node, "time_axis", 0)
    assert x is not None and lengths is not None and isinstance(time, int)  # noqa: PT018
    return time not in (0, 1) or bool(np.any((lengths < 1) | (lengths > x.shape[time])))


def negative_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    way, kernel, strides = (attribute(node, name) for name in ("auto_pad", "kernel_shape", "strides"))
    if way not in (b"SAME_UPPER", b"SAME_LOWER") or not isinstance(kernel, list) or not isinstance(strides, list):
        return False
    return any(s > k for s, k in zip(strides, kernel, strict=True))


def dilated_with_automatic_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    dilations = attribute(node, "dilations", [])
    automatic = attribute(node, "auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")
    return automatic and isinstance(dilations, list) and any(d > 1 for d in dilations)


def place_in_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    return len(node.output) > 1 and window_of_padding(node, operands)


def window_of_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    x, kernel = operands[0], attribute(node, "kernel_shape", [])
    if x is None or not isinstance(kernel, list):
        return False
    axes, extents = len(kernel), x.shape[2:]
    strides, dilations, pads = (
        np.asarray(attribute(node, name, [default] * (axes * count)))
        for name, default, count in (("strides", 1, 1), ("dilations", 1, 1), ("pads", 0, 2))
    )
    for axis, (extent, length) in enumerate(zip(extents, kernel, strict=True)):
        spare = extent + pads[axis] + pads[axis + axes] - (length - 1) * dilations[axis] - 1
        begins = np.arange(spare // strides[axis] + 1) * strides[axis] - pads[axis]
        places = begins[:, None] + np.arange(length) * dilations[axis]
        if np.any(np.all((places < 0) | (places >= extent), axis=1)):
            return True
    return False


def scales_overflow(node: onnx.NodeProto, operands: Operands) -> bool:
    first, second, result = operands[1], operands[4], operands[6]
    if first is None or second is None or result is None or first.dtype != np.float32:
        return False
    with np.errstate(all="ignore"):
        return not bool(np.isfinite(first.max(initial=0) * second.max(initial=0) / result.min(initial=np.inf)))


def outside(which: int, extent: Callable[[Array], int]) -> Callable[[onnx.NodeProto, Operands], bool]:
    """Whether an operand holds places that are none of the first operand's."""

    def holds(node: onnx.NodeProto, operands: Operands) -> bool:
        x, places = operands[0], operands[which]
        return x is not None and places is not None and bool(np.any((places < 0) | (places >= extent(x))))

    return holds


def unpools_outside(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether places lie outside of what the windows of MaxUnpool cover, or of the shape that is asked for."""
    x, places, *asked = operands
    if x is None or places is None:
        return False
    spatial = np.array(x.shape[2:])
    kernel = np.array(attribute(node, "kernel_shape"))
    strides = np.array(attribute(node, "strides", [1] * len(spatial)))
    pads = np.array(attribute(node, "pads", [0, 0] * len(spatial))).reshape(2, -1).sum(axis=0)
    covered = math.prod((*x.shape[:2], *((spatial - 1) * strides + kernel - pads).tolist()))
    most = min([covered, *(math.prod(shape.tolist()) for shape in asked if shape is not None)])
    return bool(np.any((places < 0) | (places >= most)))


def nan_in(dtype: str) -> Callable[[onnx.NodeProto, Operands], bool]:
    """Whether the first operand has the element type, and any operand NaN."""
    return lambda node, operands: (
        operands[0] is not None and operands[0].dtype.name == dtype and not_a_number(node, operands)
    )


def large_integers(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and x.dtype.kind in "iu" and bool(np.any(np.abs(x.astype(np.float64)) > 2**24))


def doubles(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].dtype == np.float64


def _resized_axes(node: onnx.NodeProto, x: Array) -> list[int]:
    axes = attribute(node, "axes", list(range(x.ndim)))
    assert isinstance(axes, list)
    return axes


def part_of_an_element(node: onnx.NodeProto, operands: Operands) -> bool:
    x, scales = operands[0], operands[2] if len(operands) > 2 else None
    if attribute(node, "coordinate_transformation_mode") != b"align_corners" or x is None or scales is None:
        return False
    axes = _resized_axes(node, x)
    lengths = [x.shape[axis] * float(scale) for axis, scale in zip(axes, scales, strict=False)]
    return any(length != round(length) for length in lengths)


def kept_extents(node: onnx.NodeProto, operands: Operands) -> bool:
    x, scales = operands[0], operands[2] if len(operands) > 2 else None
    if x is None or scales is None or not scales.size:
        return False
    axes = _resized_axes(node, x)
    same = all(int(x.shape[axis] * float(scale)) == x.shape[axis] for axis, scale in zip(axes, scales, strict=False))
    return same and bool(np.any(scales != 1))


def region_of_kept_extents(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether a region is cut out of an axis that keeps its extent."""
    x, roi = operands[0], operands[1] if len(operands) > 1 else None
    if attribute(node, "coordinate_transformation_mode") != b"tf_crop_and_resize" or x is None or roi is None:
        return False
    axes = _resized_axes(node, x)
    scales, sizes = ((*operands[2:], None, None))[:2]
    if sizes is not None and sizes.size:
        kept = [int(sizes[j]) == x.shape[axis] for j, axis in enumerate(axes)]
    else:
        kept = [scales is None or float(scales[j]) == 1 for j in range(len(axes))]
    return any(one and (roi[j], roi[len(axes) + j]) != (0, 1) for j, one in enumerate(kept))


def classes_outside(node: onnx.NodeProto, operands: Operands) -> bool:
    scores, classes = operands[0], operands[1]
    if scores is None or classes is None:
        return False
    outside = (classes < 0) | (classes >= scores.shape[1])
    return bool(np.any(outside & (classes != attribute(node, "ignore_index", None))))


_IGNORED = frozenset({"activation_alpha", "activation_beta", "activations", "clip", "input_forget"})


def ignoring(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(a.name in _IGNORED for a in node.attribute)


def fractional(node: onnx.NodeProto, operands: Operands) -> bool:
    places = operands[0]
    return places is not None and places.dtype.kind == "f" and bool(np.any(places != np.round(places)))


def wide_window(node: onnx.NodeProto, operands: Operands) -> bool:
    window = attribute(node, "kernel_shape", [])
    return isinstance(window, list) and int(np.prod(window)) > 1 << 14


def dilated(node: onnx.NodeProto, operands: Operands) -> bool:
    dilations = attribute(node, "dilations", [])
    return isinstance(dilations, list) and any(d > 1 for d in dilations) and not_finite(node, operands)


def wide_when_dilated(node: onnx.NodeProto, operands: Operands) -> bool:
    dilations, weights = attribute(node, "dilations", []), operands[1]
    return weights is not None and isinstance(dilations, list) and fills_memory(node.op_type, weights.shape, dilations)


def in_order_of_occurrence(node: onnx.NodeProto, operands: Operands) -> bool:
    return attribute(node, "sorted", 1) == 0 and len(node.output) == 1


def products_beyond_doubles(node: onnx.NodeProto, operands: Operands) -> bool:
    """Whether a scaled sum of products of integers may not come back from floating point as it is modulo 2^bits.

    Sums wrap before they are scaled; a double then holds no more than 53 bits, and is cast to its element type.
    """
    if any(o is not None and o.dtype.kind not in "iu" for o in operands):
        return False
    a, b, *rest = (0.0 if o is None else float(np.max(np.abs(o.astype(np.float64)), initial=0.0)) for o in operands)
    addends = max((extent for o in operands[:1] if o is not None for extent in o.shape), default=1)
    alpha, beta = (attribute(node, name, 1.0) for name in ("alpha", "beta"))
    assert isinstance(alpha, float) and isinstance(beta, float)  # noqa: PT018
    most = min(np.iinfo(o.dtype).max for o in operands if o is not None)
    cast_alone = alpha == 1 and not any(rest)
    return abs(alpha) * a * b * addends + abs(beta) * sum(rest) >= (_DOUBLE if cast_alone else min(_DOUBLE, most))
