"""Where the references are wrong, or the standard says nothing: nodes that are not compared, each with the reason.

A node belongs here only with the proof: its definition in ONNX computed by hand, or two versions of a reference that
differ.  The generator does not draw such nodes, and a model that has one counts as `no reference`.
These are faults of other programs: the optimizer knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from smartmem_rules.fuzzing.expected import conditions
from smartmem_rules.fuzzing.expected.conditions import Operands
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Fault:
    """An operator for whose results, under a condition, there is no reference."""

    operator: str
    holds: Callable[[onnx.NodeProto, Operands], bool]
    reason: str


_SUMS = "ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
_ORDERING = "MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin TopK Hardmax"
_SAMPLING = "Resize GridSample RoiAlign Upsample DeformConv"
_REDUCING = "ReduceMean ReduceMax ReduceMin ReduceL2 ReduceLogSum ReduceLogSumExp ReduceProd ArgMax ArgMin"
FAULTS = (
    *(
        Fault(
            o,
            conditions.not_a_number,
            "in what order NaN comes ONNX does not say, and ONNX Runtime's depends on its place",
        )
        for o in _ORDERING.split()
    ),
    Fault(
        "Resize",
        conditions.part_of_an_element,
        "ONNX's published case aligns the corners of a length that is no integer, ONNX Runtime those of the integer",
    ),
    Fault(
        "Resize",
        conditions.policy_of_some_axes,
        "ONNX Runtime's result has other extents than ONNX's shape inference says",
    ),
    Fault("AffineGrid", conditions.corners_of_one_element, "ONNX does not say which corner an only element lies in"),
    Fault("Resize", conditions.kept_extents, "ONNX Runtime copies data that keep their extents, whatever the scales"),
    Fault(
        "Resize",
        conditions.region_of_kept_extents,
        "along an axis of scale 1 ONNX Runtime takes each element, whatever part of it the region is",
    ),
    *(
        Fault(o, conditions.nan_in("float64"), "ONNX Runtime's largest element of doubles leaves NaN out")
        for o in ("Softmax", "LogSoftmax")
    ),
    Fault("Sign", conditions.nan_in("float16"), "ONNX Runtime's sign of NaN is 0 in float16, NaN in the other types"),
    Fault("CDist", conditions.not_finite, "ONNX Runtime expands the squares of differences, and inf - inf is NaN"),
    Fault(
        "CDist",
        conditions.sum_of_squares_overflows,
        "ONNX Runtime expands the squares of differences, which overflow apart: inf - inf is NaN",
    ),
    *(
        Fault(o, conditions.empty, "ONNX Runtime does not write a sum of no products")
        for o in ("MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul")
    ),
    Fault("Inverse", conditions.singular, "a singular matrix has no inverse, and roundings decide what comes out"),
    Fault("Unique", conditions.not_a_number, "ONNX Runtime orders NaN as equal to what it meets"),
    Fault(
        "CDist",
        conditions.near_each_other,
        "ONNX Runtime expands the squares of differences, and of near rows roundings are left",
    ),
    Fault(
        "Squeeze",
        conditions.no_axes_given,
        "an empty list of axes removes nothing by ONNX's shape inference and evaluator, and all by ONNX Runtime",
    ),
    Fault("Shrink", conditions.doubles, "ONNX Runtime shrinks doubles in single precision"),
    Fault("Shrink", conditions.large_integers, "ONNX Runtime shrinks integers in single precision"),
    *(
        Fault(o, conditions.not_finite, "ONNX Runtime's gates are numbers where a sum is NaN")
        for o in ("GRU", "LSTM", "RNN")
    ),
    *(
        Fault(o, conditions.not_finite, "whether neighbours of weight 0 count, which may be infinite")
        for o in _SAMPLING.split()
    ),
    *(
        Fault(
            o, conditions.not_finite, "the sum is infinite at frequency 0, a fast transform makes NaN of its infinities"
        )
        for o in ("DFT", "STFT")
    ),
    *(
        Fault(o, conditions.empty, "the value of nothing is not defined, and ONNX Runtime's shape of it is not ONNX's")
        for o in _REDUCING.split()
    ),
    Fault(
        "Clip",
        conditions.infinite_without_bound,
        "ONNX's function leaves an infinity where there is no bound, ONNX Runtime makes it the greatest number",
    ),
    *(
        Fault(o, conditions.not_a_number, "which of NaN and a number a reduction of updates keeps")
        for o in ("ScatterElements", "ScatterND")
    ),
    Fault(
        "Slice",
        conditions.backward_to_greatest,
        "ONNX Runtime takes the greatest integer for the end in either direction",
    ),
    *(
        Fault(o, conditions.integers_overflow, "ONNX Runtime sums some integers as floats, which saturate")
        for o in _SUMS.split()
    ),
    *(
        Fault(o, conditions.no_spatial_axes, "a pool without spatial axes")
        for o in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
    ),
    *(
        Fault(o, conditions.negative_padding, "ONNX Runtime refuses the padding, and the evaluator takes other windows")
        for o in ("MaxPool", "AveragePool", "LpPool")
    ),
    *(
        Fault(
            o,
            conditions.dilated_with_automatic_padding,
            "ONNX Runtime pads as if the window had no gaps, and its result is smaller",
        )
        for o in ("MaxPool", "AveragePool", "LpPool")
    ),
    Fault(
        "ReduceProd",
        conditions.products_leave_range,
        "in one order the product overflows or vanishes, in another it does not",
    ),
    Fault("MaxUnpool", conditions.unpools_outside, "places outside of the tensor are not defined"),
    Fault(
        "Pow", conditions.power_overflows, "ONNX Runtime's powers of integers are those of doubles, which do not wrap"
    ),
    *(
        Fault(o, conditions.infinite_parameters, "ONNX Runtime multiplies the parameters out: inf - inf")
        for o in ("BatchNormalization", "InstanceNormalization")
    ),
    Fault("LRN", conditions.even_size, "ONNX Runtime refuses even sizes, and the evaluator takes one channel too few"),
    Fault("LRN", conditions.not_finite, "ONNX Runtime's running sum carries NaN to all channels behind its window"),
    *(
        Fault(
            o,
            conditions.variance_overflows,
            "where the variance overflows ONNX's functions, evaluator and Runtime differ",
        )
        for o in ("LayerNormalization", "GroupNormalization", "InstanceNormalization")
    ),
    *(
        Fault(
            o,
            conditions.sum_of_squares_overflows,
            "ONNX Runtime's mean of squares overflows where the deviations do not",
        )
        for o in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "EmbedLayerNormalization")
    ),
    Fault(
        "BatchNormalization",
        conditions.difference_from_mean_overflows,
        "by ONNX's formula x - mean overflows, ONNX Runtime makes the mean part of the bias",
    ),
    *(
        Fault(
            o,
            conditions.sum_of_squares_overflows,
            "by ONNX's function the squares overflow, and by ONNX Runtime for rows of some shapes only",
        )
        for o in ("RMSNormalization", "SimplifiedLayerNormalization")
    ),
    Fault("LRN", conditions.variance_overflows, "squares overflow in single precision, and not in double precision"),
    Fault(
        "InstanceNormalization",
        conditions.far_from_zero,
        "ONNX Runtime adds the bias to the mean times the scale, beside which it vanishes",
    ),
    *(
        Fault(o, conditions.classes_outside, "classes that the scores do not have are not defined")
        for o in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    ),
    Fault("RoiAlign", conditions.outside(2, lambda x: x.shape[0]), "batches outside of the data are not defined"),
    Fault(
        "ReverseSequence",
        conditions.lengths_outside,
        "lengths outside of the sequence and other axes of time are not defined",
    ),
    Fault("QuantizeLinear", conditions.not_a_number, "no integer stands for NaN"),
    Fault(
        "DynamicQuantizeLinear",
        conditions.range_overflows,
        "the scale is infinite or NaN, and the zero point a cast of it",
    ),
    Fault(
        "MeanVarianceNormalization",
        conditions.no_variance,
        "rows of small variance: ONNX's function adds 1e-9 to the deviation, and ONNX Runtime does not",
    ),
    Fault(
        "GridSample",
        conditions.far_away,
        "beside places beyond 2^24, where singles are whole and apart, both of ONNX Runtime's weights are 0",
    ),
    Fault(
        "MaxPool",
        conditions.place_in_padding,
        "ONNX Runtime's place of the largest element of nothing is none of the data",
    ),
    *(
        Fault(
            o,
            conditions.scales_overflow,
            "ONNX Runtime multiplies the scales in single precision, beyond its greatest number",
        )
        for o in ("QLinearMatMul", "QLinearConv")
    ),
)


EVALUATOR_FAULTS = (
    *(
        Fault(o, conditions.ignoring, "ONNX's evaluator takes attributes of gates and does not look at them")
        for o in ("GRU", "LSTM", "RNN")
    ),
    Fault(
        "OneHot",
        conditions.fractional,
        "ONNX's evaluator compares places that are no integers, which ONNX Runtime cuts",
    ),
    Fault(
        "AveragePool",
        conditions.not_a_number,
        "ONNX's evaluator marks its padding by NaN, and leaves out NaN of the data",
    ),
    Fault(
        "AveragePool",
        conditions.window_of_padding,
        "ONNX's evaluator divides nothing by nothing where a window holds padding alone",
    ),
    *(
        Fault(o, conditions.wide_window, "ONNX's evaluator takes minutes for windows of so many elements")
        for o in ("AveragePool", "LpPool", "MaxPool")
    ),
    Fault("Unique", conditions.in_order_of_occurrence, "ONNX's evaluator sorts where the elements are the only result"),
    Fault(
        "Gemm",
        conditions.products_beyond_doubles,
        "ONNX's evaluator multiplies integers by alpha and beta in floating point",
    ),
    Fault("Conv", conditions.dilated, "ONNX's evaluator multiplies what lies in the gaps of a window by 0"),
    *(
        Fault(o, conditions.wide_when_dilated, "ONNX's evaluator writes out the gaps of weights, which fill the memory")
        for o in ("Conv", "ConvInteger")
    ),
)
"""Where ONNX's evaluator is wrong, for nodes that ONNX Runtime does not take."""


def evaluator_fault_of(node: onnx.NodeProto, operands: Operands) -> Fault | None:
    """Why the evaluator's results of a node are not compared; None where they are."""
    return next((f for f in EVALUATOR_FAULTS if f.operator == node.op_type and f.holds(node, operands)), None)


def fault_of(node: onnx.NodeProto, operands: Operands) -> Fault | None:
    """Why ONNX Runtime's results of a node are not compared; None where they are."""
    return next((f for f in FAULTS if f.operator == node.op_type and f.holds(node, operands)), None)
