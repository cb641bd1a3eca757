"""Recipes for operators of several steps: normalisations, attention, recurrences, the fused ones of com.microsoft.

A recipe names its operator because it draws ONNX models, whose operands have to fit together; `recipes.rules` draws
those of every other operator from its definition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import FLOAT_TYPES, MICROSOFT, Builder
from smartmem_rules.fuzzing.recipes.sums import window

ANY_AXIS = ("LayerNormalization", "LpNormalization", "RMSNormalization", "written")
NORMALIZATIONS = (
    *ANY_AXIS, "LayerNormalization", "BatchNormalization", "InstanceNormalization", "LRN", "MeanVarianceNormalization",
    "GroupNormalization",
)  # fmt: skip
FUSED = (
    "FusedMatMul", "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "SkipLayerNormalization", "FusedConv",
    "SkipSimplifiedLayerNormalization",
)  # fmt: skip
CONTRIBUTED = ("Trilu", "ExpandDims", "Pad", "Unique", "CDist", "NhwcMaxPool", "Inverse")


def _epsilon(b: Builder) -> dict[str, Any]:
    """What keeps a normalization from dividing by zero; now and then as the operator has it by itself."""
    chosen = b.pick((1e-5, 0.1, None))
    return {} if chosen is None else {"epsilon": float(chosen)}


def normalization(b: Builder) -> None:
    operator = b.pick(NORMALIZATIONS)
    x = b.tensor(FLOAT_TYPES, 1 if operator in ANY_AXIS else 3, 5)
    shape, dtype = b.shape(x), b.array(x).dtype.name
    if 0 in shape:
        return
    rank = len(shape)
    axis = b.integer(-rank, rank - 1)
    epsilon = _epsilon(b)
    channels = (shape[1],) if rank > 1 else (1,)
    if operator in ("LayerNormalization", "RMSNormalization"):
        rows = shape[axis:]
        bias = [b.operand(rows, dtype)] if operator == "LayerNormalization" and b.chance() else []
        b.one(operator, [x, b.operand(rows, dtype), *bias], axis=axis, **epsilon)
    elif operator == "BatchNormalization":
        variance = b.constant(b.random.uniform(0.3, 2, channels), dtype)
        b.one(operator, [x, *(b.weight(channels, dtype) for _ in range(3)), variance], **epsilon)
    elif operator == "InstanceNormalization":
        b.one(operator, [x, b.weight(channels, dtype), b.weight(channels, dtype)], **epsilon)
    elif operator == "LRN":
        b.one(operator, [x], size=b.pick((1, 3, 5)), alpha=0.1, beta=0.75, bias=1.0)
    elif operator == "LpNormalization":
        b.one(operator, [x], axis=axis, p=b.integer(1, 2))
    elif operator == "MeanVarianceNormalization":
        b.one(operator, [x], axes=b.subset(range(rank), 1))
    elif operator == "GroupNormalization":
        groups = b.pick([g for g in (1, 2, 3, 4) if shape[1] % g == 0])
        each = channels if b.opset >= 21 else (groups,)
        b.one(operator, [x, b.weight(each, dtype), b.weight(each, dtype)], num_groups=groups, **epsilon)
    else:
        written_normalization(b, x)


def written_normalization(b: Builder, x: str) -> None:
    """A normalisation as exporters of old opsets wrote it."""
    dtype = b.array(x).dtype
    axes = b.subset(range(b.array(x).ndim), 1)
    mean = b.reduced("ReduceMean", x, axes, True)
    centred = mean and b.one("Sub", [x, mean])
    square = centred and b.one(*b.pick((("Mul", [centred, centred]), ("Pow", [centred, b.constant(2, dtype)]))))
    variance = square and b.reduced("ReduceMean", square, axes, True)
    safe = variance and b.one("Add", [variance, b.constant(0.1, dtype)])
    deviation = safe and b.one("Sqrt", [safe])
    if centred and deviation:
        b.one("Div", [centred, deviation])


def attention(b: Builder) -> None:
    """softmax(q k / sqrt(d) + mask) v for some heads."""
    dtype = b.pick(("float32", "float32", "float16"))
    x = b.tensor((dtype,), 2, 3, lambda a: a.size > 0)
    shape = b.shape(x)
    heads, deep = int(b.pick(b.sizes.heads)), int(b.pick(b.sizes.head_width))
    rows = shape[-2]
    parts: list[str | None] = []
    lead = [1] if len(shape) == 2 else [shape[0]]
    for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        product = b.one("MatMul", [x, b.weight((shape[-1], heads * deep), dtype)])
        cut = product and b.one("Reshape", [product, b.ints([*lead, rows, heads, deep])])
        parts.append(cut and b.one("Transpose", [cut], perm=turn))
    if not all(parts):
        return
    scores = b.one("MatMul", [str(parts[0]), str(parts[1])])
    scores = scores and b.one(b.pick(("Mul", "Div")), [scores, b.constant(1 / math.sqrt(deep), dtype)])
    if scores and b.chance():
        scores = b.one(
            "Add",
            [scores, b.operand(b.pick(((rows, rows), (1, 1, rows, rows), (rows,), (lead[0], 1, 1, rows))), dtype)],
        )
    weights = scores and b.one("Softmax", [scores], axis=-1)
    mixed = weights and b.one("MatMul", [weights, str(parts[2])])
    back = mixed and b.one("Transpose", [mixed], perm=[0, 2, 1, 3])
    if back:
        b.one("Reshape", [back, b.ints([*lead, rows, heads * deep])])


def recurrent(b: Builder) -> None:
    operator = b.pick(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    x = b.tensor(("float32",), 3, 3, lambda a: a.size > 0)
    steps, batch, width = b.shape(x)
    if batch * width == 0:
        return
    if b.chance(0.05):
        steps, x = 0, b.input(b.fresh((0, batch, width), "float32"))
    hidden = int(b.pick((1, 2, 3, 5, 8)))
    way = b.pick(("forward", "reverse", "bidirectional"))
    ways = 2 if way == "bidirectional" else 1
    operands = [
        x,
        b.weight((ways, gates * hidden, width), "float32"),
        b.weight((ways, gates * hidden, hidden), "float32"),
    ]
    operands.append(b.weight((ways, 2 * gates * hidden), "float32") if b.chance(0.6) else "")
    operands.append(_lengths(b, steps, batch) if b.chance(0.3) else "")
    for _ in range(2 if operator == "LSTM" else 1):
        operands.append(b.operand((ways, batch, hidden), "float32") if b.chance(0.4) else "")
    if operator == "LSTM" and b.chance(0.2):
        operands.append(b.weight((ways, 3 * hidden), "float32"))
    while not operands[-1]:
        operands.pop()
    given: dict[str, Any] = {"linear_before_reset": b.integer(0, 1)} if operator == "GRU" else {}
    if operator == "LSTM" and b.chance(0.2):
        given["input_forget"] = 1
    if b.chance(0.2):
        given["clip"] = b.pick((0.3, 0.8, 1.5, 4.0, 0.0, -0.5))  # one below zero is refused
    b.add(operator, operands, 3 if operator == "LSTM" else 2, direction=way, hidden_size=hidden, **given)


def _lengths(b: Builder, steps: int, batch: int) -> str:
    """How many steps each sequence has; some have none."""
    lengths = b.random.integers(0 if b.chance(0.3) else min(steps, 1), steps + 1, batch).astype(np.int32)
    return b.constant(lengths) if b.chance() else b.input(lengths)


def grid(b: Builder) -> None:
    x = b.tensor(("float32",), 4, 4, lambda a: a.size > 0)
    batch = b.shape(x)[0]
    rows, columns = b.integer(1, 5), b.integer(1, 5)
    operand = b.input(b.random.uniform(-1.2, 1.2, (batch, rows, columns, 2)).astype(np.float32))
    modes = ("bilinear", "nearest", "bicubic") if b.opset < 20 else ("linear", "nearest", "cubic")
    edges = b.pick(("zeros", "border", "reflection"))
    b.one("GridSample", [x, operand], mode=b.pick(modes), padding_mode=edges, align_corners=b.integer(0, 1))


def fused(b: Builder) -> None:
    """Operators of com.microsoft."""
    operator = b.pick(FUSED)
    if operator in ("Gelu", "FastGelu", "QuickGelu"):
        b.one(operator, [b.tensor(("float32",))], MICROSOFT)
    elif operator in ("BiasGelu",):
        x = b.tensor(("float32",), 1)
        b.one(operator, [x, b.weight((b.shape(x)[-1],), "float32")], MICROSOFT)
    elif operator == "FusedMatMul":
        x = b.tensor(("float32",), 2, 4)
        first, second = b.integer(0, 1), b.integer(0, 1)
        inner = b.shape(x)[-2] if first else b.shape(x)[-1]
        columns = int(b.pick(b.sizes.columns))
        w = b.operand((columns, inner) if second else (inner, columns), "float32")
        b.one(operator, [x, w], MICROSOFT, transA=first, transB=second, alpha=float(b.pick((1.0, 0.5))))
    elif operator.startswith("Skip"):
        x = b.tensor(("float32",), 3, 3)
        width = (b.shape(x)[-1],)
        rest = [b.weight(width, "float32") for _ in range(2 if operator == "SkipLayerNormalization" else 1)]
        b.one(operator, [x, b.operand(b.shape(x), "float32"), *rest], MICROSOFT, **_epsilon(b))
    elif operator == "FusedConv":
        x = b.tensor(("float32",), 4, 4, lambda a: a.size > 0)
        given = window(b, b.shape(x)[2:], True)
        w = b.operand((b.integer(1, 5), b.shape(x)[1], *given["kernel_shape"]), "float32")
        b.one(operator, [x, w], MICROSOFT, activation=b.pick(("Relu", "Tanh", "Sigmoid")), **given)


def contributed(b: Builder) -> None:
    """Operators of com.microsoft that are no fusions: some have become ONNX's own since."""
    operator = b.pick(CONTRIBUTED)
    if operator == "Trilu":
        k = [b.ints(b.integer(-3, 3))] if b.chance() else []
        b.one(operator, [b.tensor(("float32", "int64"), 2, 5), *k], MICROSOFT, upper=b.integer(0, 1))
    elif operator == "ExpandDims":
        x = b.tensor(None, 0, 5)
        rank = len(b.shape(x))
        b.one(operator, [x, b.constant(b.integer(-rank - 1, rank), np.int32)], MICROSOFT)
    elif operator == "Pad":
        x = b.tensor(("float32",), 1, 4)
        pads = b.ints([b.integer(0, 2) for _ in range(2 * len(b.shape(x)))])
        b.one(operator, [x, pads], MICROSOFT, mode=b.pick(("constant", "edge")))
    elif operator == "Unique":
        b.add(operator, [b.tensor(("float32",), 1, 1)], 3, MICROSOFT)
    elif operator == "CDist":
        x = b.tensor(("float32",), 2, 2)
        other = b.operand((b.integer(1, 5), b.shape(x)[1]), "float32")
        b.one(operator, [x, other], MICROSOFT, metric=b.pick(("euclidean", "sqeuclidean")))
    elif operator == "NhwcMaxPool":
        x = b.tensor(("int8", "uint8"), 4, 4, lambda a: a.size > 0)
        b.one(operator, [x], MICROSOFT, **window(b, b.shape(x)[1:3], False))
    else:
        n = b.integer(1, 5)  # far from singular, or no digit of the result means anything
        matrix = b.random.uniform(-0.2, 0.2, (*b.pick(((), (2,))), n, n)) + np.eye(n)
        b.one(operator, [b.input(matrix.astype(np.float32))], MICROSOFT)
