"""Why answers to special values differ, for bench/special_values.py: one sentence for each kind of difference.

The first reason that fits a difference explains it. A difference that none fits makes the command fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from special_differences import Difference, Reason, Who
from special_examples import Kind

NAN, INFINITY, ZERO, DENORMAL, LARGE, TIE, END, DIVISION = (
    Kind.NAN, Kind.INFINITY, Kind.ZERO, Kind.DENORMAL, Kind.LARGE, Kind.TIE, Kind.END, Kind.DIVISION,
)  # fmt: skip
ANYONE = (Who.ONNX, Who.ONNXRUNTIME, Who.HERE, Who.EACH)
HALVES = ("float16", "bfloat16")
DOUBLES = ("float64",)

REASONS: Sequence[Reason] = (
    Reason(
        "ONNX does not say in which order NaN comes, and ONNX Runtime's answer depends on where NaN stands; here NaN "
        "is an extreme wherever it stands.",
        "MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin TopK Hardmax ScatterElements ScatterND Unique",
        ANYONE,
        (NAN,),
    ),
    Reason(
        "ONNX Runtime's maxima of floats begin at the lowest finite number; the maximum of -inf alone is -inf.",
        "MaxPool GlobalMaxPool",
        (Who.ONNXRUNTIME,),
        (INFINITY,),
        said=True,
    ),
    Reason(
        "Among equal elements the evaluator gives a place in the padding; here it is the first of them in the data.",
        "MaxPool",
        (Who.ONNX,),
    ),
    Reason(
        "A bound that is NaN gives NaN by ONNX's function, `Min(Max(x, low), high)`; ONNX Runtime takes it for none.",
        "Clip",
        (Who.ONNXRUNTIME,),
        (NAN,),
        said=True,
    ),
    Reason(
        "Without a bound ONNX's function body is `Identity`; ONNX Runtime makes an infinity the greatest number, which "
        "ONNX's text names as the bound.",
        "Clip",
        (Who.ONNXRUNTIME,),
        (INFINITY, LARGE),
        said=True,
    ),
    Reason(
        "The greater and the smaller of 0 and -0 may be either, as in IEEE 754.",
        "Clip Min Max Relu",
        ANYONE,
        (ZERO,),
    ),
    Reason(
        "0 is not below 0 and stays what it is, as ONNX's text has it: others multiply both by the slope, or add both "
        "cases.",
        "PRelu",
        (Who.ONNX, Who.ONNXRUNTIME),
        (ZERO,),
    ),
    Reason(
        "A sum begins at 0, so that the sum of -0 is 0; of the signs of zeros in sums ONNX says nothing.",
        "ReduceSum ReduceMean Mean Sum CumSum GridSample Resize SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss "
        "AffineGrid DFT STFT Einsum MatMul Conv",
        ANYONE,
        (ZERO,),
    ),
    Reason(
        "The sign of 0 is 0.",
        "Sign",
        (Who.ONNX,),
        (ZERO,),
    ),
    Reason(
        "ONNX Runtime adds what is chosen to 0, which takes the sign of a zero; here elements are chosen.",
        "Where",
        (Who.ONNXRUNTIME,),
        (ZERO,),
        said=True,
    ),
    Reason(
        "The evaluator multiplies both values by a mask and adds them; by ONNX's text, and here, one of them is "
        "chosen.",
        "OneHot",
        (Who.ONNX,),
    ),
    Reason(
        "ONNX Runtime computes `exp(x) - 1`, or its own approximation, of which nothing is left near 0; here it is "
        "`expm1`, and the C function `tanh`.",
        "Celu Elu Selu Tanh",
        (Who.ONNXRUNTIME,),
        (ZERO, DENORMAL),
        said=True,
    ),
    Reason(
        "ONNX Runtime's sign of NaN is 0 in halves and NaN in the other types; here it is NaN in all.",
        "Sign",
        (Who.ONNXRUNTIME,),
        (NAN,),
        said=True,
    ),
    Reason(
        "ONNX does not say what NaN and numbers outside of the type become; here a uint32 takes the low bits of the "
        "int64, on all devices ([casts](numerics.md#casts)).",
        "Cast",
        (Who.HERE,),
        (NAN, INFINITY, LARGE),
        ("float32", "float64"),
    ),
    Reason(
        "ONNX says nothing of integers divided by 0, and of the lowest one divided by -1; ONNX Runtime reports an "
        "error, or ends. Here, where a kernel can report none, the quotient and the remainder by 0 are 0, and the "
        "lowest integer is its own negative.",
        "Div Mod",
        (Who.ONNXRUNTIME,),
        (DIVISION, END),
    ),
    Reason(
        "Integers to the power of integers wrap here, as products do; ONNX Runtime's powers are those of doubles, "
        "which saturate. With a float as the exponent they are so here, and differ in the last digits.",
        "Pow",
        (Who.ONNXRUNTIME,),
        (END,),
    ),
    Reason(
        "Sums, products and squares of integers wrap here; ONNX Runtime computes them in floating point and saturates, "
        "or loses digits.",
        "ReduceL1 ReduceProd ReduceSum ReduceSumSquare ReduceMean ReduceLogSum ReduceLogSumExp",
        (Who.ONNXRUNTIME,),
        (END,),
    ),
    Reason(
        "The mean of integers is summed in 64 bits here; the evaluator's sum wraps in the type of its elements.",
        "ReduceMean",
        (Who.ONNX,),
        (END,),
    ),
    Reason(
        "The root of the squares of integers is computed in floating point here, and a result outside of the type is "
        "cast as any other; the evaluator's squares wrap, ONNX Runtime's result saturates.",
        "ReduceL2",
        ANYONE,
        (END,),
    ),
    Reason(
        "The evaluator multiplies the integers in floating point, and loses digits or casts what leaves the type.",
        "Gemm",
        (Who.ONNX,),
        (END,),
    ),
    Reason(
        "Integers times a broken `alpha` or `beta` are no integers; such a node is refused with a message.",
        "Gemm",
        (Who.REFUSED,),
    ),
    Reason(
        "Integers are interpolated where ONNX Runtime does so (`Resize`, `linear`, int8, uint8, int32); others are "
        "refused with a message.",
        "Resize Upsample GridSample",
        (Who.REFUSED,),
    ),
    Reason(
        "Only floats are quantized; int32 is refused with a message, and ONNX Runtime does not have it either.",
        "QuantizeLinear",
        (Who.REFUSED,),
    ),
    Reason(
        "Integers between neighbours are computed in single precision and cut, as in ONNX Runtime; the evaluator "
        "rounds them, and ONNX says neither. A sum that is whole stays whole here, ONNX Runtime may lose one.",
        "Resize Upsample",
        (Who.ONNX, Who.ONNXRUNTIME),
        (Kind.ORDINARY, TIE, END, DIVISION),
        ("int8", "uint8", "int32"),
    ),
    Reason(
        "The evaluator clips what it interpolates to the greatest number; an infinity stays one here.",
        "Resize Upsample",
        ANYONE,
        (INFINITY, LARGE),
    ),
    Reason(
        "The evaluator interpolates, or computes the function, in single precision; doubles are doubles here.",
        "Resize Upsample GridSample DeformConv Erf Gelu HardSwish AffineGrid",
        (Who.ONNX,),
        (Kind.ORDINARY, DENORMAL, LARGE),
        DOUBLES,
    ),
    Reason(
        "The evaluator's softmax gives zeros where all scores are NaN or -inf, because masked rows are zeros; here, as "
        "in ONNX Runtime, only rows that a mask empties are.",
        "Attention",
        (Who.ONNX,),
        (NAN, INFINITY),
    ),
    Reason(
        "ONNX's `stash_type` has the statistics of doubles in single precision, where squares overflow and digits are "
        "lost; here doubles stay doubles.",
        "LayerNormalization GroupNormalization RMSNormalization",
        (Who.HERE, Who.EACH, Who.ONNX),
        (Kind.ORDINARY, DENORMAL, LARGE),
        DOUBLES,
        said=True,
    ),
    Reason(
        "Where sums or squares exceed the type ONNX's formula, its function, its evaluator and ONNX Runtime differ; "
        "here deviations from the mean are squared in single precision.",
        "LayerNormalization GroupNormalization InstanceNormalization RMSNormalization MeanVarianceNormalization LRN "
        "LpNormalization",
        ANYONE,
        (LARGE,),
    ),
    Reason(
        "ONNX Runtime multiplies the parameters out, which makes NaN of infinite ones; here the formula is ONNX's.",
        "InstanceNormalization LayerNormalization BatchNormalization",
        (Who.ONNXRUNTIME,),
        (INFINITY,),
        said=True,
    ),
    Reason(
        "ONNX Runtime's running sum carries NaN and infinities to all channels behind its window.",
        "LRN",
        (Who.ONNXRUNTIME,),
        (NAN, INFINITY),
        said=True,
    ),
    Reason(
        "ONNX's function adds 1e-9 to the deviation, ONNX Runtime does not: rows without variance are NaN there.",
        "MeanVarianceNormalization",
        (Who.ONNXRUNTIME,),
        (ZERO, DENORMAL, TIE),
        said=True,
    ),
    Reason(
        "The evaluator's sum of the norm has no absolute values; here it has, as ONNX's text and ONNX Runtime.",
        "LpNormalization",
        (Who.ONNX,),
        (LARGE, TIE),
    ),
    Reason(
        "The evaluator marks its padding by NaN and leaves out NaN of the data.",
        "LpPool AveragePool",
        (Who.ONNX,),
        (NAN,),
    ),
    Reason(
        "The determinant is that of an elimination with another order of rows.",
        "Det",
        (Who.ONNX,),
        (DENORMAL,),
    ),
    Reason(
        "ONNX Runtime computes parts of this operator in single precision; doubles are doubles here.",
        "Attention Shrink",
        (Who.ONNXRUNTIME,),
        (Kind.ORDINARY, LARGE),
        DOUBLES,
        said=True,
    ),
    Reason(
        "Integers are shrunk in 64 bits here, and in floating point by the others, which lose digits.",
        "Shrink",
        (Who.ONNXRUNTIME, Who.HERE),
        (END,),
    ),
    Reason(
        "Here each frequency is a sum of products with sines and cosines, in which NaN and infinities reach all parts; "
        "fast transforms make NaN of some, keep 0 in others, and round by the largest element.",
        "DFT STFT",
        ANYONE,
    ),
    Reason(
        "Regions that are no numbers, or reach beyond the integers, are not defined; ONNX Runtime reports an error.",
        "RoiAlign",
        (Who.ONNXRUNTIME,),
        (NAN, INFINITY, LARGE),
    ),
    Reason(
        "ONNX does not say whether a neighbour of weight 0 counts, which may be NaN or infinite.",
        "DeformConv RoiAlign GridSample Resize",
        ANYONE,
        (NAN, INFINITY),
    ),
    Reason(
        "ONNX Runtime subtracts the zero point in 32 bits, where the difference wraps; here it is a float.",
        "DequantizeLinear",
        (Who.ONNXRUNTIME,),
        (END,),
        said=True,
    ),
    Reason(
        "No integer stands for NaN, and no scale for an infinite range: the zero point is a cast of NaN, of which ONNX "
        "says nothing.",
        "DynamicQuantizeLinear",
        ANYONE,
        (NAN, INFINITY, LARGE),
    ),
    Reason(
        "The scale of a range without numbers is 1, as in ONNX Runtime; ONNX's formula divides by 0.",
        "DynamicQuantizeLinear",
        (Who.ONNX,),
        (ZERO,),
    ),
    Reason(
        "The result saturates, as ONNX's text says; the evaluator casts infinities and large numbers before.",
        "QuantizeLinear",
        (Who.ONNX,),
        (INFINITY, LARGE, ZERO, DENORMAL),
    ),
    Reason(
        "The evaluator multiplies scales in halves; here, as in ONNX Runtime, they are singles.",
        "QLinearMatMul",
        (Who.ONNX,),
    ),
    Reason(
        "The gates of ONNX Runtime are numbers where a sum is NaN; NaN stays NaN here.",
        "GRU LSTM RNN",
        (Who.ONNXRUNTIME,),
        (NAN, INFINITY, LARGE),
        said=True,
    ),
    Reason(
        "ONNX Runtime approximates the functions of gates, with errors that show in states near 0.",
        "LSTM",
        (Who.ONNXRUNTIME,),
        (DENORMAL,),
        said=True,
    ),
    Reason(
        "The evaluator takes the logarithm of a softmax that underflows; ONNX's function body subtracts the logarithm "
        "of the sum, as is done here.",
        "LogSoftmax SoftmaxCrossEntropyLoss",
        (Who.ONNX,),
        (DENORMAL, LARGE),
    ),
    Reason(
        "ONNX Runtime's largest element of doubles leaves NaN out.",
        "LogSoftmax Softmax",
        (Who.ONNXRUNTIME,),
        (INFINITY, NAN),
        said=True,
    ),
    Reason(
        "The logarithm of a sum of zeros is -inf, which the evaluator subtracts from itself.",
        "ReduceLogSumExp",
        (Who.ONNX,),
        (INFINITY,),
    ),
    Reason(
        "ONNX Runtime refuses thresholds outside of 0 to 1; here they are compared as they are.",
        "NonMaxSuppression",
        (Who.ONNXRUNTIME,),
        (NAN, INFINITY, LARGE, TIE),
        said=True,
    ),
    Reason(
        "The evaluator rounds each step to the half, and its sums overflow or vanish; here, as in ONNX Runtime, a node "
        "computes in single precision and rounds its outputs.",
        "Attention Gemm HardSwish InstanceNormalization LRN LayerNormalization LpNormalization LpPool ReduceL2 "
        "ReduceLogSum ReduceLogSumExp ReduceMean RMSNormalization Resize RotaryEmbedding GroupNormalization "
        "LinearAttention SoftmaxCrossEntropyLoss",
        (Who.ONNX, Who.EACH),
        (),
        HALVES,
    ),
    Reason(
        "Where others round on the way to the half, single precision is kept here until the output.",
        "Attention LinearAttention",
        (Who.HERE,),
        (DENORMAL, LARGE),
        HALVES,
    ),
    Reason(
        "A sum whose addends leave the type on its way has the value that the order of its additions gives, which ONNX "
        "leaves open. Scores of `Attention` are scaled once summed; ONNX scales both factors by the root before.",
        "Attention CausalConvWithState Conv ConvTranspose DeformConv Det Einsum LinearAttention MatMul Gemm AffineGrid",
        ANYONE,
        (LARGE,),
    ),
)


def reason_of(difference: Difference) -> int | None:
    """The number of the first reason that fits, from 1 on; None where there is none."""
    return next((number for number, reason in enumerate(REASONS, 1) if reason.fits(difference)), None)
