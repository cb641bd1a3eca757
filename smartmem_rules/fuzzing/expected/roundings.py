"""Which operators round, and where.

The definitions in the rule files tell it, too.  A reference must not rely on them: it shows where they are wrong.
"""

from __future__ import annotations

EXACT = frozenset(
    {
        "Abs", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil",
        "CenterCropPad", "Clip", "Col2Im", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace",
        "Dropout", "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
        "GlobalMaxPool", "Greater", "GreaterOrEqual", "HardTanh", "Identity", "IsInf", "IsNaN", "Less",
        "LessOrEqual", "Max", "MaxPool", "MaxUnpool", "Min", "Neg", "NonMaxSuppression", "NonZero", "Not", "OneHot",
        "Optional", "Or", "Pad", "Range", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence", "Round",
        "ScatterElements", "ScatterND", "Shape", "Shrink", "Sign", "Size", "Slice", "SpaceToDepth", "Split",
        "Squeeze", "ThresholdedRelu", "Tile", "TopK", "Transpose", "Tril", "Trilu", "Unique", "Unsqueeze",
        "Upsample", "Where", "Xor",
    }
)  # fmt: skip
"""Operators whose results are among their operands, or integers: they round nothing."""
SUMMING = frozenset(
    {
        "AffineGrid", "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "CumSum", "DFT",
        "DeformConv", "Det", "Einsum", "FusedMatMul", "GRU", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GridSample",
        "GroupNormalization", "GroupQueryAttention", "InstanceNormalization", "LRN", "LSTM", "LayerNormalization",
        "LpNormalization", "LpPool", "MatMul", "Mean", "MeanVarianceNormalization", "MelWeightMatrix",
        "MultiHeadAttention", "RMSNormalization", "RNN", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
        "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize", "RoiAlign", "STFT",
        "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Sum",
    }
)  # fmt: skip
"""Operators that add products or operands: an order of summation is a rounding of the operands."""
LINEAR = frozenset(
    {
        "AveragePool", "Conv", "ConvTranspose", "CumSum", "Einsum", "FusedMatMul", "Gemm", "GlobalAveragePool",
        "MatMul", "Mean", "ReduceL1", "ReduceMean", "ReduceSum", "Sum",
    }
)  # fmt: skip
"""Those of them that are linear in each operand: of the operands' sizes they make the size of all addends together."""
WITHOUT_SIGN = LINEAR | {"Max", "Min", "Relu", "Where"}
"""Operators whose zeros may lose their sign: sums, the greater or smaller of 0 and -0, and ONNX Runtime's choice, which
adds what is chosen to 0."""
CANCELLING = frozenset(
    {
        "Acos", "Acosh", "Asinh", "Atanh", "BiasGelu", "BiasSplitGelu", "DFT", "FastGelu", "Gelu", "GridSample", "Mish",
        "QuickGelu", "Resize", "RoiAlign", "STFT",
        "LogSoftmax", "ReduceLogSumExp", "Sin", "Cos", "Tan", "LSTM", "GRU", "RNN",
    }
)  # fmt: skip
"""Functions that are computed in steps whose roundings are those of numbers as large as the operand."""
WITHIN_ONE = frozenset({"Sin", "Cos"})
"""Those of them whose results lie between -1 and 1, however little is known of the operand."""
MIXING = frozenset(
    {"DFT", "STFT", "GridSample", "Resize", "RoiAlign", "LogSoftmax", "ReduceLogSumExp", "LSTM", "GRU", "RNN"}
)
"""Those of them each of whose results hangs on many elements: the largest of all rounds it."""
INTERPOLATING = frozenset({"GridSample", "Resize", "RoiAlign"})
"""Those of them that weigh neighbours by the fraction of a place: the place's rounding grows with the extent."""
SHIFTING = frozenset({"GroupNormalization", "InstanceNormalization", "LayerNormalization"})
"""Normalizations that add numbers which may cancel."""
STASHED = frozenset({"LayerNormalization", "RMSNormalization", "GroupNormalization", "SkipLayerNormalization"})
"""Operators that by their definition (`stash_type`) compute in single precision, even where operands are wider."""
RECURRENT = frozenset({"DynamicQuantizeLSTM", "GRU", "LSTM", "RNN"})
"""Operators with gates and a state."""
