"""Recipes for arithmetic: each draws operands and attributes and appends an operator, or a small pattern of some."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import FLOAT_TYPES, NUMBER_TYPES, ONNX_TYPES, Builder

FLOAT_UNARY = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor",
    "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Reciprocal", "Round", "Selu",
    "Shrink", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip
ANY_UNARY = ("Abs", "Neg", "Relu", "Sign", "Identity")
ALPHAS = {"Celu": "alpha", "Elu": "alpha", "LeakyRelu": "alpha", "HardSigmoid": "alpha", "Swish": "alpha",
          "ThresholdedRelu": "alpha", "Shrink": "lambd"}  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Mod", "Mean", "Sum")
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum",
              "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare")  # fmt: skip


def unary(b: Builder) -> None:
    if b.chance(0.75):
        operator = b.pick(FLOAT_UNARY)
        x = b.tensor(FLOAT_TYPES)
    else:
        operator = b.pick(ANY_UNARY)
        x = b.tensor(NUMBER_TYPES)
    given: dict[str, Any] = {}
    if operator in ALPHAS and b.chance():
        given = {ALPHAS[operator]: float(b.pick((0.5, 1.0, 0.2, 1.702)))}
    if operator == "Gelu" and b.chance():
        given = {"approximate": "tanh"}
    b.one(operator, [x], **given)


def binary(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES)
    other = b.beside(x)
    operands = [x, other] if b.chance() else [other, x]
    operator = b.pick(BINARY) if b.chance(0.5) else b.pick(BINARY[:4])
    if operator in ("Max", "Min", "Mean", "Sum") and b.chance(0.3):
        operands.append(b.beside(x))
    given: dict[str, Any] = {}
    if operator == "Mod" and (b.chance(0.3) or b.array(x).dtype.kind == "f"):
        given = {"fmod": 1}
    if operator in ("Mod", "Div") and b.array(x).dtype.kind in "iu":
        # an integer divided by zero is nothing that ONNX defines
        divisor = np.abs(b.random.integers(1, 7, b.shape(operands[1]))).astype(b.array(x).dtype)
        operands[1] = b.constant(divisor) if b.chance(0.7) else b.input(divisor)
    if operator == "Pow" and b.array(x).dtype.kind in "iu":
        operands = [x, b.constant(b.integer(0, 3), b.array(x).dtype)]
    b.one(operator, operands, **given)


def compare(b: Builder) -> None:
    x = b.tensor((*NUMBER_TYPES, "bool"))
    other = b.beside(x)
    b.one(b.pick(COMPARISONS), [x, other] if b.chance() else [other, x])


def logic(b: Builder) -> None:
    if b.chance(0.6):
        x = b.tensor(("bool",))
        operator = b.pick(("And", "Or", "Xor", "Not"))
        b.one(operator, [x] if operator == "Not" else [x, b.beside(x)])
        return
    x = b.tensor(tuple(t for t in NUMBER_TYPES if t not in FLOAT_TYPES))
    operator = b.pick(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    if operator == "BitShift":
        amount = b.random.integers(0, 8, b.shape(x)).astype(b.array(x).dtype)
        b.one(operator, [x, b.constant(amount)], direction=b.pick(("LEFT", "RIGHT")))
    else:
        b.one(operator, [x] if operator == "BitwiseNot" else [x, b.beside(x)])


def where(b: Builder) -> None:
    x = b.tensor()
    condition = b.operand(tuple(1 if b.chance(0.3) else e for e in b.shape(x)), "bool")
    other = b.beside(x) if b.array(x).dtype != bool else b.operand(b.shape(x), "bool")
    b.one("Where", [condition, x, other] if b.chance() else [condition, other, x])


def read_again(b: Builder) -> None:
    """A chain whose every step reads the one before several times: written into one another, it doubles at each."""
    x: str | None = b.tensor(FLOAT_TYPES)
    for _ in range(b.integer(4, 16)):
        if x is None:
            return
        kind = b.pick(("gate", "choice", "greatest", "row", "outer", "written"))
        shape = b.shape(x)
        if kind == "gate":
            gate = b.one(b.pick(("Sigmoid", "HardSigmoid", "Tanh", "Cos")), [x])
            x = gate and b.one("Mul", [x, gate])
        elif kind == "choice":
            other = b.one(b.pick(("Sin", "Neg", "Softsign")), [x])
            less = other and b.one("Less", [x, other])
            x = less and b.one("Where", [less, x, other or x])
        elif kind == "greatest" or not shape or 0 in shape:
            other = b.one("Neg", [x])
            x = other and b.one(b.pick(("Max", "Min")), [x, other])
        elif kind == "row":
            row = b.reduced("ReduceMax", x, [len(shape) - 1], True)
            x = row and b.one("Sub", [x, row])
        elif kind == "outer":
            row, column = (b.reduced("ReduceMean", x, [axis], True) for axis in (len(shape) - 1, 0))
            x = row and column and b.one("Mul", [row, column])
        else:
            places = b.random.permutation(shape[0])[:1].reshape((1,) * len(shape))
            written = b.one("ScatterElements", [x, b.constant(places), b.operand(places.shape, b.array(x).dtype.name)])
            x = written and b.one("Add", [written, x])


def clip(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES)
    dtype = b.array(x).dtype
    low, high = sorted((b.integer(0 if dtype.kind == "u" else -3, 3), b.integer(0, 5)))
    bounds = [b.constant(low, dtype) if b.chance(0.8) else "", b.constant(high, dtype) if b.chance(0.8) else ""]
    b.one("Clip", [x, *bounds])


def cast(b: Builder) -> None:
    x = b.tensor()
    name = b.pick(b.dtypes) if b.chance(0.7) else b.pick(tuple(ONNX_TYPES))
    array = b.array(x)
    if array.dtype.kind == "f" and np.dtype(name).kind in "iu":
        # what lies outside of the integers has no value that ONNX defines
        low, high = (0.0, 100.0) if np.dtype(name).kind == "u" else (-100.0, 100.0)
        limited = b.one("Clip", [x, b.constant(low, array.dtype), b.constant(high, array.dtype)])
        if limited is None or np.isnan(b.array(limited)).any():
            return
        x = limited
    if b.chance(0.2):
        b.one("CastLike", [x, b.weight((), name)])
    else:
        b.one("Cast", [x], to=ONNX_TYPES[name])


def reduction(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES)
    rank = b.array(x).ndim
    axes = [a - rank if b.chance(0.3) else a for a in b.subset(range(rank), 0 if b.chance(0.1) else 1)]
    operator = b.pick(REDUCTIONS) if b.chance(0.5) else b.pick(REDUCTIONS[:4])
    if not axes:
        b.one(operator, [x], keepdims=b.integer(0, 1))
    else:
        b.reduced(operator, x, axes, b.chance())


def arg(b: Builder) -> None:
    x = b.tensor(NUMBER_TYPES, 1)
    rank = b.array(x).ndim
    given: dict[str, Any] = {"axis": b.integer(-rank, rank - 1), "keepdims": b.integer(0, 1)}
    b.one(b.pick(("ArgMax", "ArgMin")), [x], select_last_index=b.integer(0, 1), **given)


def softmax(b: Builder) -> None:
    x = b.tensor(FLOAT_TYPES, 1)
    rank = b.array(x).ndim
    b.one(b.pick(("Softmax", "Softmax", "LogSoftmax", "Hardmax")), [x], axis=b.integer(-rank, rank - 1))


def cumulative(b: Builder) -> None:
    x = b.tensor(("float32", "float64", "int32", "int64"), 1)
    axis = b.constant(b.integer(0, b.array(x).ndim - 1), b.pick((np.int64, np.int32)))
    b.one("CumSum", [x, axis], exclusive=b.integer(0, 1), reverse=b.integer(0, 1))


def rows_and_columns(b: Builder) -> None:
    """A result that two readers read in different directions, and a third one whole."""
    x = b.tensor(NUMBER_TYPES, 1, 5)
    rank = b.array(x).ndim
    made = b.reduced(b.pick(REDUCTIONS[:4]), x, b.subset(range(rank), 1), True) if b.chance(0.7) else x
    if made is None:
        return
    shape = b.shape(made)
    way = b.integer(0, 2)
    turned: str | None = None
    if way == 0 and 1 in shape:
        ones = [a for a, e in enumerate(shape) if e == 1]
        turned = b.one("Squeeze", [made, b.ints(b.subset(ones, 1))])
    elif way == 1:
        turned = b.one("Transpose", [made], perm=b.random.permutation(rank).tolist())
    else:
        order = b.random.permutation(rank)
        turned = b.one("Reshape", [made, b.ints([shape[k] for k in order])])
    if turned is not None:
        operands = [made, turned] if b.chance() else [turned, made]
        b.one(b.pick(("Add", "Mul", "Sub", "Max")), operands)


def quantized(b: Builder) -> None:
    kind = b.pick(("uint8", "int8"))
    x = b.tensor(("float32",), 1)
    shape = b.shape(x)
    axis = b.integer(0, len(shape) - 1)
    each = (shape[axis],) if b.chance(0.4) else ()
    scale = b.constant(b.random.uniform(0.02, 0.3, each), np.float32)
    zero = b.constant(b.random.integers(0, 9, each), kind)
    held = b.one("QuantizeLinear", [x, scale, zero], axis=axis)
    if held is not None and b.chance(0.8):
        b.one("DequantizeLinear", [held, scale, zero], axis=axis)
