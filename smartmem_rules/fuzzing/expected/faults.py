"""Where the references are wrong, or the standard says nothing: nodes that are not compared, each with the reason.

A node belongs here only with the proof: its definition in ONNX computed by hand, or two versions of a reference that
differ.  The generator does not draw such nodes, and a model that has one counts as `no reference`.
These are faults of other programs: the optimizer knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.fuzzing.case import Array

Operands = Sequence[Array | None]


@dataclass(frozen=True)
class Fault:
    """An operator for whose results, under a condition, there is no reference."""

    operator: str
    holds: Callable[[onnx.NodeProto, Operands], bool]
    reason: str


def attribute(node: onnx.NodeProto, name: str, default: object = None) -> object:
    """The value of an attribute."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _no_variance(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    axes = attribute(node, "axes", [0, 2, 3])
    assert x is not None and isinstance(axes, list)  # noqa: PT018
    with np.errstate(all="ignore"):
        return bool(x.size and np.any(~(np.var(x.astype(np.float64), axis=tuple(axes)) > 1e-6)))


def _far_from_zero(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.ndim < 3 or not x.size:
        return False
    with np.errstate(all="ignore"):
        axes = tuple(range(2, x.ndim))
        spread = np.sqrt(np.var(x.astype(np.float64), axis=axes) + 1e-5)
        return bool(np.any(np.abs(x.astype(np.float64)).max(axis=axes) > 1e3 * spread))


def _not_finite(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(o is not None and o.dtype.kind == "f" and not np.isfinite(o).all() for o in operands)


def _not_a_number(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(o is not None and o.dtype.kind == "f" and np.isnan(o).any() for o in operands)


def _empty(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].size == 0


def _range_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and bool(x.size) and not bool(np.abs(x).max() < 1e37)


def _backward_to_greatest(node: onnx.NodeProto, operands: Operands) -> bool:
    ends, steps = operands[2] if len(operands) > 2 else None, operands[4] if len(operands) > 4 else None
    return ends is not None and steps is not None and bool(np.any((steps < 0) & (ends >= 2**31 - 1)))


def _infinite_without_bound(node: onnx.NodeProto, operands: Operands) -> bool:
    bounds = [operands[k] if len(operands) > k else None for k in (1, 2)]
    return any(b is None for b in bounds) and _not_finite(node, operands[:1])


def _integers_overflow(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.dtype.kind not in "iu" or not x.size:
        return False
    sizes = np.abs(x.astype(np.float64))
    total = float(np.prod(np.maximum(sizes, 1))) if node.op_type == "ReduceProd" else float((sizes**2).sum())
    return total >= 2.0 ** min(52, 8 * x.dtype.itemsize - 1)


def _products_leave_range(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    if x is None or x.dtype.kind != "f" or not x.size:
        return False
    sizes = np.log2(np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64))
    return float(np.maximum(sizes, 0).sum()) > 127 or float(np.minimum(sizes, 0).sum()) < -126


def _go_together(*operands: Array) -> bool:
    """Whether the shapes broadcast; the node is invalid where they do not, and every reference refuses it."""
    try:
        np.broadcast_shapes(*(operand.shape for operand in operands))
    except ValueError:
        return False
    return True


def _power_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    base, exponent = operands[0], operands[1]
    if base is None or exponent is None or base.dtype.kind not in "iu":
        return False
    if not _go_together(base, exponent):
        return False
    with np.errstate(all="ignore"):
        powers = np.abs(np.power(base.astype(np.float64), exponent.astype(np.float64)))
    return not bool(np.all(powers < 2.0 ** (8 * base.dtype.itemsize - 1)))


def _far_away(node: onnx.NodeProto, operands: Operands) -> bool:
    x, places = operands[0], operands[1]
    if x is None or places is None or not places.size:
        return False
    far = np.abs(places.astype(np.float64)) * max(x.shape[2:], default=1)
    return bool(np.any(np.isfinite(far) & (far >= 2.0**24)))


def _negative_clip(node: onnx.NodeProto, operands: Operands) -> bool:
    clip = attribute(node, "clip", 0.0)
    return isinstance(clip, float) and clip < 0


def _infinite_parameters(node: onnx.NodeProto, operands: Operands) -> bool:
    return _not_finite(node, operands[1:])


def _variance_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and x.size > 0 and x.dtype.name != "float16" and bool(np.nanmax(np.abs(x)) > 1e18)


def _sum_of_squares_overflows(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(_variance_overflows(node, [x]) for x in operands if x is not None and x.dtype.kind == "f")


def _even_size(node: onnx.NodeProto, operands: Operands) -> bool:
    size = attribute(node, "size", 1)
    return isinstance(size, int) and size % 2 == 0


def _policy_of_some_axes(node: onnx.NodeProto, operands: Operands) -> bool:
    keeps = attribute(node, "keep_aspect_ratio_policy", b"stretch") != b"stretch"
    return keeps and attribute(node, "axes") is not None


def _corners_of_one_element(node: onnx.NodeProto, operands: Operands) -> bool:
    size = operands[1]
    return attribute(node, "align_corners", 0) == 1 and size is not None and bool(np.any(size[2:] == 1))


def _no_spatial_axes(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].ndim < 3


def _lengths_outside(node: onnx.NodeProto, operands: Operands) -> bool:
    x, lengths = operands[0], operands[1]
    time = attribute(node, "time_axis", 0)
    assert x is not None and lengths is not None and isinstance(time, int)  # noqa: PT018
    return time not in (0, 1) or bool(np.any((lengths < 1) | (lengths > x.shape[time])))


def _negative_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    way, kernel, strides = (attribute(node, name) for name in ("auto_pad", "kernel_shape", "strides"))
    if way not in (b"SAME_UPPER", b"SAME_LOWER") or not isinstance(kernel, list) or not isinstance(strides, list):
        return False
    return any(s > k for s, k in zip(strides, kernel, strict=True))


def _dilated_with_automatic_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    dilations = attribute(node, "dilations", [])
    automatic = attribute(node, "auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")
    return automatic and isinstance(dilations, list) and any(d > 1 for d in dilations)


def _window_of_padding(node: onnx.NodeProto, operands: Operands) -> bool:
    x, kernel = operands[0], attribute(node, "kernel_shape", [])
    if len(node.output) < 2 or x is None or not isinstance(kernel, list):
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


def _scales_overflow(node: onnx.NodeProto, operands: Operands) -> bool:
    first, second, result = operands[1], operands[4], operands[6]
    if first is None or second is None or result is None or first.dtype != np.float32:
        return False
    with np.errstate(all="ignore"):
        return not bool(np.isfinite(first.max(initial=0) * second.max(initial=0) / result.min(initial=np.inf)))


def _outside(which: int, extent: Callable[[Array], int]) -> Callable[[onnx.NodeProto, Operands], bool]:
    """Whether an operand holds places that are none of the first operand's."""

    def holds(node: onnx.NodeProto, operands: Operands) -> bool:
        x, places = operands[0], operands[which]
        return x is not None and places is not None and bool(np.any((places < 0) | (places >= extent(x))))

    return holds


def _nan_in(dtype: str) -> Callable[[onnx.NodeProto, Operands], bool]:
    """Whether the first operand has the element type, and any operand NaN."""
    return lambda node, operands: (
        operands[0] is not None and operands[0].dtype.name == dtype and _not_a_number(node, operands)
    )


def _large_integers(node: onnx.NodeProto, operands: Operands) -> bool:
    x = operands[0]
    return x is not None and x.dtype.kind in "iu" and bool(np.any(np.abs(x.astype(np.float64)) > 2**24))


def _doubles(node: onnx.NodeProto, operands: Operands) -> bool:
    return operands[0] is not None and operands[0].dtype == np.float64


def _part_of_an_element(node: onnx.NodeProto, operands: Operands) -> bool:
    x, scales = operands[0], operands[2] if len(operands) > 2 else None
    if attribute(node, "coordinate_transformation_mode") != b"align_corners" or x is None or scales is None:
        return False
    axes = attribute(node, "axes", list(range(x.ndim)))
    assert isinstance(axes, list)
    lengths = [x.shape[axis] * float(scale) for axis, scale in zip(axes, scales, strict=False)]
    return any(length != round(length) for length in lengths)


def _kept_extents(node: onnx.NodeProto, operands: Operands) -> bool:
    x, scales = operands[0], operands[2] if len(operands) > 2 else None
    if x is None or scales is None or not scales.size:
        return False
    axes = attribute(node, "axes", list(range(x.ndim)))
    assert isinstance(axes, list)
    same = all(int(x.shape[axis] * float(scale)) == x.shape[axis] for axis, scale in zip(axes, scales, strict=False))
    return same and bool(np.any(scales != 1))


def _classes_outside(node: onnx.NodeProto, operands: Operands) -> bool:
    scores, classes = operands[0], operands[1]
    if scores is None or classes is None:
        return False
    outside = (classes < 0) | (classes >= scores.shape[1])
    return bool(np.any(outside & (classes != attribute(node, "ignore_index", None))))


_SUMS = "ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
_ORDERING = "MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin TopK Hardmax"
_SAMPLING = "Resize GridSample RoiAlign Upsample"
_REDUCING = "ReduceMean ReduceMax ReduceMin ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ArgMax ArgMin"
FAULTS = (
    *(
        Fault(o, _not_a_number, "in what order NaN comes ONNX does not say, and ONNX Runtime's depends on its place")
        for o in _ORDERING.split()
    ),
    Fault(
        "Resize",
        _part_of_an_element,
        "ONNX's published case aligns the corners of a length that is no integer, ONNX Runtime those of the integer",
    ),
    Fault("Resize", _policy_of_some_axes, "ONNX Runtime's result has other extents than ONNX's shape inference says"),
    Fault("AffineGrid", _corners_of_one_element, "ONNX does not say which corner an only element lies in"),
    Fault("Resize", _kept_extents, "ONNX Runtime copies data that keep their extents, whatever the scales"),
    *(
        Fault(o, _nan_in("float64"), "ONNX Runtime's largest element of doubles leaves NaN out")
        for o in ("Softmax", "LogSoftmax")
    ),
    Fault("Sign", _nan_in("float16"), "ONNX Runtime's sign of NaN is 0 in float16, NaN in the other types"),
    Fault("Shrink", _doubles, "ONNX Runtime shrinks doubles in single precision"),
    Fault("Shrink", _large_integers, "ONNX Runtime shrinks integers in single precision"),
    *(Fault(o, _not_finite, "ONNX Runtime's gates are numbers where a sum is NaN") for o in ("GRU", "LSTM", "RNN")),
    *(Fault(o, _not_finite, "whether neighbours of weight 0 count, which may be infinite") for o in _SAMPLING.split()),
    *(
        Fault(o, _empty, "the value of nothing is not defined, and ONNX Runtime's shape of it is not ONNX's")
        for o in _REDUCING.split()
    ),
    Fault(
        "Clip",
        _infinite_without_bound,
        "ONNX's function leaves an infinity where there is no bound, ONNX Runtime makes it the greatest number",
    ),
    *(
        Fault(o, _not_a_number, "which of NaN and a number a reduction of updates keeps")
        for o in ("ScatterElements", "ScatterND")
    ),
    Fault("Slice", _backward_to_greatest, "ONNX Runtime takes the greatest integer for the end in either direction"),
    *(Fault(o, _integers_overflow, "ONNX Runtime sums some integers as floats, which saturate") for o in _SUMS.split()),
    *(
        Fault(o, _no_spatial_axes, "a pool without spatial axes")
        for o in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
    ),
    *(
        Fault(o, _negative_padding, "ONNX Runtime refuses the padding, and the evaluator takes other windows")
        for o in ("MaxPool", "AveragePool", "LpPool")
    ),
    *(
        Fault(
            o,
            _dilated_with_automatic_padding,
            "ONNX Runtime pads as if the window had no gaps, and its result is smaller",
        )
        for o in ("MaxPool", "AveragePool", "LpPool")
    ),
    Fault(
        "ReduceProd", _products_leave_range, "in one order the product overflows or vanishes, in another it does not"
    ),
    Fault("MaxUnpool", _outside(1, lambda x: x.size), "places outside of the tensor are not defined"),
    Fault("Pow", _power_overflows, "ONNX Runtime's powers of integers are those of doubles, which do not wrap"),
    *(Fault(o, _negative_clip, "a bound below zero bounds nothing") for o in ("GRU", "LSTM", "RNN")),
    *(
        Fault(o, _infinite_parameters, "ONNX Runtime multiplies the parameters out: inf - inf")
        for o in ("BatchNormalization", "InstanceNormalization")
    ),
    Fault("LRN", _even_size, "ONNX Runtime refuses even sizes, and the evaluator takes one channel too few"),
    Fault("LRN", _not_finite, "ONNX Runtime's running sum carries NaN to all channels behind its window"),
    *(
        Fault(o, _variance_overflows, "where the variance overflows ONNX's functions, evaluator and Runtime differ")
        for o in ("LayerNormalization", "GroupNormalization", "InstanceNormalization")
    ),
    *(
        Fault(o, _sum_of_squares_overflows, "ONNX Runtime's mean of squares overflows where the deviations do not")
        for o in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "EmbedLayerNormalization")
    ),
    Fault("LRN", _variance_overflows, "squares overflow in single precision, and not in double precision"),
    Fault(
        "InstanceNormalization",
        _far_from_zero,
        "ONNX Runtime adds the bias to the mean times the scale, beside which it vanishes",
    ),
    *(
        Fault(o, _classes_outside, "classes that the scores do not have are not defined")
        for o in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    ),
    Fault("RoiAlign", _outside(2, lambda x: x.shape[0]), "batches outside of the data are not defined"),
    Fault(
        "ReverseSequence", _lengths_outside, "lengths outside of the sequence and other axes of time are not defined"
    ),
    Fault("QuantizeLinear", _not_a_number, "no integer stands for NaN"),
    Fault("DynamicQuantizeLinear", _range_overflows, "the scale is infinite or NaN, and the zero point a cast of it"),
    Fault(
        "MeanVarianceNormalization",
        _no_variance,
        "rows of small variance: ONNX's function adds 1e-9 to the deviation, and ONNX Runtime does not",
    ),
    Fault(
        "GridSample",
        _far_away,
        "beside places beyond 2^24, where singles are whole and apart, both of ONNX Runtime's weights are 0",
    ),
    Fault("MaxPool", _window_of_padding, "ONNX Runtime's place of the largest element of nothing is none of the data"),
    *(
        Fault(o, _scales_overflow, "ONNX Runtime multiplies the scales in single precision, beyond its greatest number")
        for o in ("QLinearMatMul", "QLinearConv")
    ),
)


_IGNORED = frozenset({"activation_alpha", "activation_beta", "activations", "clip", "input_forget"})


def _ignoring(node: onnx.NodeProto, operands: Operands) -> bool:
    return any(a.name in _IGNORED for a in node.attribute)


def _fractional(node: onnx.NodeProto, operands: Operands) -> bool:
    places = operands[0]
    return places is not None and places.dtype.kind == "f" and bool(np.any(places != np.round(places)))


def _wide_window(node: onnx.NodeProto, operands: Operands) -> bool:
    window = attribute(node, "kernel_shape", [])
    return isinstance(window, list) and int(np.prod(window)) > 1 << 14


def _dilated(node: onnx.NodeProto, operands: Operands) -> bool:
    dilations = attribute(node, "dilations", [])
    return isinstance(dilations, list) and any(d > 1 for d in dilations) and _not_finite(node, operands)


EVALUATOR_FAULTS = (
    *(
        Fault(o, _ignoring, "ONNX's evaluator takes attributes of gates and does not look at them")
        for o in ("GRU", "LSTM", "RNN")
    ),
    Fault("OneHot", _fractional, "ONNX's evaluator compares places that are no integers, which ONNX Runtime cuts"),
    Fault("AveragePool", _not_a_number, "ONNX's evaluator marks its padding by NaN, and leaves out NaN of the data"),
    *(
        Fault(o, _wide_window, "ONNX's evaluator takes minutes for windows of so many elements")
        for o in ("AveragePool", "LpPool", "MaxPool")
    ),
    Fault("Conv", _dilated, "ONNX's evaluator multiplies what lies in the gaps of a window by 0"),
)
"""Where ONNX's evaluator is wrong, for nodes that ONNX Runtime does not take."""


def evaluator_fault_of(node: onnx.NodeProto, operands: Operands) -> Fault | None:
    """Why the evaluator's results of a node are not compared; None where they are."""
    return next((f for f in EVALUATOR_FAULTS if f.operator == node.op_type and f.holds(node, operands)), None)


def fault_of(node: onnx.NodeProto, operands: Operands) -> Fault | None:
    """Why ONNX Runtime's results of a node are not compared; None where they are."""
    return next((f for f in FAULTS if f.operator == node.op_type and f.holds(node, operands)), None)
