"""Draws small ONNX models: chains and branches of every kind of kernel, over extents that fill no vector.

All operators are chosen such that they hardly enlarge errors: weights are scaled by the length of their sums,
normalisations have a large epsilon, and nothing is discontinuous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.plan.models import Array, Model

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17)
MOST_ELEMENTS = 3000
OPSET = 17
UNARY = ("Tanh", "Sigmoid", "Relu", "Neg", "Abs", "Erf", "Softplus", "LeakyRelu", "HardSwish", "Gelu3", "Sin")


@dataclass
class Builder:
    """A graph that grows by operators on its float tensors."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    count: int = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def maybe(self) -> bool:
        return self.integer(0, 1) == 1

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    # --- tensors ---

    def input(self, shape: tuple[int, ...], values: Array | None = None) -> str:
        name = f"x{len(self.inputs)}"
        array = self.random.standard_normal(shape).astype(np.float32) if values is None else values
        self.feeds[name] = np.asarray(array)
        kind = helper.np_dtype_to_tensor_dtype(self.feeds[name].dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        if values is None:
            self.shapes[name] = shape
        return name

    def constant(self, values: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(self, shape: tuple[int, ...], summed: int) -> str:
        """A constant, or now and then an input."""
        values = (self.random.standard_normal(shape) / math.sqrt(max(1, summed))).astype(np.float32)
        return self.constant(values) if self.integer(0, 3) else self.input(shape, values)

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(self, operator: str, operands: list[str], shape: tuple[int, ...], **attributes: Any) -> str:
        return self.add_many(operator, operands, [shape], **attributes)[0]

    def add_many(
        self, operator: str, operands: list[str], shapes: list[tuple[int, ...]], **attributes: Any
    ) -> list[str]:
        names = [self.name() for _ in shapes]
        self.nodes.append(helper.make_node(operator, operands, names, **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        return names

    def shape(self, lowest: int = 0, highest: int = 4) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.integer(lowest, highest)):
            room = MOST_ELEMENTS // math.prod(shape)
            shape.append(self.pick([e for e in EXTENTS if e <= room]))
        return tuple(shape)

    def tensor(self, lowest: int = 0, highest: int = 6) -> str:
        """A tensor of the graph whose rank fits, a late one most likely, or a new input."""
        fitting = [n for n, s in self.shapes.items() if lowest <= len(s) <= highest and math.prod(s)]
        if not fitting or self.integer(0, 9) == 0:
            return self.input(self.shape(lowest, min(highest, 4)))
        return fitting[-1] if self.maybe() else str(self.pick(fitting))

    # --- operators ---

    def step(self) -> None:
        """One more operator."""
        getattr(self, f"_{self.pick(KINDS)}")()

    def _unary(self) -> None:
        x = self.tensor()
        operator = self.pick(UNARY)
        if operator == "Gelu3":  # the decomposed form that exporters write
            e = self.add("Erf", [self.add("Mul", [x, self._scalar(0.7071)], self.shapes[x])], self.shapes[x])
            half = self.add("Mul", [x, self._scalar(0.5)], self.shapes[x])
            self.add("Mul", [half, self.add("Add", [e, self._scalar(1.0)], self.shapes[x])], self.shapes[x])
        else:
            self.add(operator, [x], self.shapes[x])

    def _scalar(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def _binary(self) -> None:
        x = self.tensor()
        shape = self.shapes[x]
        same = [n for n, s in self.shapes.items() if s == shape and n != x]
        if same and self.maybe():
            other = str(self.pick(same))
        else:
            cut = shape[self.integer(0, len(shape)) :]
            other = self.weights(tuple(1 if self.integer(0, 2) == 0 else e for e in cut), 1)
        operands = [x, other] if self.maybe() else [other, x]
        operator = self.pick(("Add", "Sub", "Mul", "Max", "Min"))
        if operator == "Mul":
            operands[0] = self.add("Tanh", [operands[0]], shape if operands[0] == x else self.shape_of(operands[0]))
        self.add(operator, operands, shape)

    def shape_of(self, name: str) -> tuple[int, ...]:
        if name in self.shapes:
            return self.shapes[name]
        if name in self.feeds:
            return self.feeds[name].shape
        return tuple(next(c for c in self.constants if c.name == name).dims)

    def _reduction(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axes = [a for a in range(len(shape)) if self.maybe()] or [self.integer(0, len(shape) - 1)]
        keep = self.maybe()
        left = tuple(1 if a in axes else e for a, e in enumerate(shape) if keep or a not in axes)
        operator = self.pick(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"))
        given = [a - len(shape) if self.maybe() else a for a in axes]
        self.add(operator, [x], left, axes=given, keepdims=int(keep))

    def _softmax(self) -> None:
        x = self.tensor(1)
        axis = self.integer(0, len(self.shapes[x]) - 1)
        self.add(self.pick(("Softmax", "Softmax", "LogSoftmax")), [x], self.shapes[x], axis=axis)

    def _layer_norm(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        if self.maybe():
            axis = self.integer(0, len(shape) - 1)
            operands = [x, self.weights(shape[axis:], 1)] + ([self.weights(shape[axis:], 1)] if self.maybe() else [])
            self.add("LayerNormalization", operands, shape, axis=axis, epsilon=0.1)
            return
        axis = self.integer(0, len(shape) - 1)
        rows = (*shape[:axis], 1, *shape[axis + 1 :])
        centred = self.add("Sub", [x, self.add("ReduceMean", [x], rows, axes=[axis])], shape)
        square = self.add("Mul", [centred, centred], shape)
        variance = self.add("ReduceMean", [square], rows, axes=[axis])
        deviation = self.add("Sqrt", [self.add("Add", [variance, self._scalar(0.1)], rows)], rows)
        self.add("Div", [centred, deviation], shape)

    def _matmul(self) -> None:
        x = self.tensor(2, 4)
        *batch, rows, inner = self.shapes[x]
        columns = self.pick(EXTENTS)
        if math.prod(batch) * rows * columns > MOST_ELEMENTS:
            columns = 1
        kind = self.pick(("shared", "batched", "self", "gemm"))
        if kind == "gemm" and not batch:
            transposed = self.maybe()
            w = self.weights((columns, inner) if transposed else (inner, columns), inner)
            bias = [self.weights((columns,), 1)] if self.maybe() else []
            self.add("Gemm", [x, w, *bias], (rows, columns), transB=int(transposed), alpha=self.pick((1.0, 0.5)))
        elif kind == "self" and rows * rows * math.prod(batch) <= MOST_ELEMENTS:
            rank = len(self.shapes[x])
            perm = [*range(rank - 2), rank - 1, rank - 2]
            small = self.add(
                "Tanh", [self.add("Mul", [x, self._scalar(1 / math.sqrt(inner))], self.shapes[x])], self.shapes[x]
            )
            other = self.add("Transpose", [small], (*batch, inner, rows), perm=perm)
            self.add("MatMul", [small, other], (*batch, rows, rows))
        elif kind == "batched":
            self.add("MatMul", [x, self.weights((*batch, inner, columns), inner)], (*batch, rows, columns))
        else:
            self.add("MatMul", [x, self.weights((inner, columns), inner)], (*batch, rows, columns))

    def _attention(self) -> None:
        """softmax(q k / sqrt(d) + mask) v for some heads of an input."""
        heads, rows, inner = self.integer(1, 3), int(self.pick(EXTENTS)), int(self.pick(EXTENTS))
        x = self.tensor(2, 2) if self.maybe() else self.input((rows, inner))
        rows, inner = self.shapes[x]
        if heads * rows * max(rows, inner) > MOST_ELEMENTS:
            return
        flat, split, wide = self.ints(rows, heads, inner), (rows, heads, inner), heads * inner
        parts = []
        for perm in ([1, 0, 2], [1, 2, 0], [1, 0, 2]):
            product = self.add("MatMul", [x, self.weights((inner, wide), inner)], (rows, wide))
            turned = tuple(split[p] for p in perm)
            part = self.add("Reshape", [product, flat], split)
            parts.append(self.add("Transpose", [part], turned, perm=perm))
        small = self.add("Tanh", [parts[0]], self.shapes[parts[0]])
        square = (heads, rows, rows)
        scores = self.add("MatMul", [small, self.add("Tanh", [parts[1]], self.shapes[parts[1]])], square)
        scaled = self.add("Mul", [scores, self._scalar(1 / math.sqrt(inner))], square)
        if self.maybe():
            scaled = self.add("Add", [scaled, self.weights((rows, rows), 1)], square)
        mixed = self.add("MatMul", [self.add("Softmax", [scaled], square, axis=-1), parts[2]], (heads, rows, inner))
        back = self.add("Transpose", [mixed], split, perm=[1, 0, 2])
        self.add("Reshape", [back, self.ints(rows, wide)], (rows, wide))

    def _window(self, most_dilation: int) -> tuple[str, list[int], dict[str, Any], tuple[int, ...]]:
        x = self.tensor(3, 4)
        spatial = self.shapes[x][2:]
        kernel, strides, dilations, before, after, result = [], [], [], [], [], []
        for extent in spatial:
            size, dilation = self.integer(1, 3), self.integer(1, most_dilation)
            low, high = self.integer(0, size - 1), self.integer(0, size - 1)
            if extent + low + high < dilation * (size - 1) + 1:
                size, dilation, low, high = 1, 1, 0, 0
            stride = self.integer(1, 3)
            kernel.append(size)
            strides.append(stride)
            dilations.append(dilation)
            before.append(low)
            after.append(high)
            result.append((extent + low + high - dilation * (size - 1) - 1) // stride + 1)
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": before + after}
        return x, dilations, attributes, tuple(result)

    def _conv(self) -> None:
        x, dilations, attributes, spatial = self._window(2)
        batch, channels = self.shapes[x][:2]
        group = self.pick([g for g in (1, 2, 3, channels) if channels % g == 0])
        each = self.integer(1, 5)
        if batch * group * each * math.prod(spatial) > MOST_ELEMENTS:
            each = 1
        kernel = attributes["kernel_shape"]
        summed = channels // group * math.prod(kernel)
        w = self.weights((group * each, channels // group, *kernel), summed)
        bias = [self.weights((group * each,), 1)] if self.maybe() else []
        shape = (batch, group * each, *spatial)
        self.add("Conv", [x, w, *bias], shape, dilations=dilations, group=group, **attributes)

    def _pool(self) -> None:
        x, _, attributes, spatial = self._window(1)
        shape = (*self.shapes[x][:2], *spatial)
        # ONNX's evaluator loses some paddings of a MaxPool; the tests of operators compare those with ONNX Runtime
        if not any(attributes["pads"]) and self.maybe():
            self.add("MaxPool", [x], shape, **attributes)
        elif self.maybe():
            self.add("GlobalAveragePool", [x], (*self.shapes[x][:2], *(1 for _ in spatial)))
        else:
            self.add("AveragePool", [x], shape, count_include_pad=int(self.maybe()), **attributes)

    def _reshape(self) -> None:
        x = self.tensor()
        rest = math.prod(self.shapes[x])
        shape: list[int] = []
        while rest > 1:
            factor = self.pick([f for f in range(2, rest + 1) if rest % f == 0][:8] or [rest])
            shape.append(factor)
            rest //= factor
        if self.maybe() and len(shape) < 5:
            shape.insert(self.integer(0, len(shape)), 1)
        self.add("Reshape", [x, self.ints(*shape)], tuple(shape))

    def _transpose(self) -> None:
        x = self.tensor(1)
        perm = self.random.permutation(len(self.shapes[x])).tolist()
        self.add("Transpose", [x], tuple(self.shapes[x][p] for p in perm), perm=perm)

    def _slice(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        start = self.integer(0, shape[axis] - 1)
        stop = self.integer(start + 1, shape[axis])
        step = self.integer(1, 3)
        left = (*shape[:axis], -(-(stop - start) // step), *shape[axis + 1 :])
        if self.maybe():
            bounds = self.ints(start), self.ints(stop), self.ints(axis), self.ints(step)
        else:
            # backwards over the same elements; the last one before the start means that there is none
            last = start + (left[axis] - 1) * step
            bounds = self.ints(last), self.ints(start - 1 if start else -(10**6)), self.ints(axis), self.ints(-step)
        self.add("Slice", [x, *bounds], left)

    def _shift(self) -> None:
        """Two slices the other way round: a cyclic shift, as in window attention."""
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        if shape[axis] < 2:
            return
        cut = self.integer(1, shape[axis] - 1)
        ends = self.ints(shape[axis]), self.ints(axis)
        second = self.add("Slice", [x, self.ints(cut), *ends], (*shape[:axis], shape[axis] - cut, *shape[axis + 1 :]))
        first = self.add("Slice", [x, self.ints(0), self.ints(cut), ends[1]], (*shape[:axis], cut, *shape[axis + 1 :]))
        self.add("Concat", [second, first], shape, axis=axis)

    def _concat(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        others = [n for n, s in self.shapes.items() if _fits(s, shape, axis)]
        parts = [x, *(str(self.pick(others)) for _ in range(self.integer(1, 2)))]
        extent = sum(self.shapes[p][axis] for p in parts)
        if extent * math.prod(shape) // shape[axis] <= MOST_ELEMENTS:
            self.add("Concat", parts, (*shape[:axis], extent, *shape[axis + 1 :]), axis=axis)

    def _split(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        if shape[axis] < 2:
            return
        first = self.integer(1, shape[axis] - 1)
        shapes = [(*shape[:axis], e, *shape[axis + 1 :]) for e in (first, shape[axis] - first)]
        self.add_many("Split", [x, self.ints(first, shape[axis] - first)], shapes, axis=axis)

    def _gather(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        chosen = self.shape(0, 2)
        if math.prod(chosen) * math.prod(shape) // shape[axis] > MOST_ELEMENTS:
            chosen = ()
        values = self.random.integers(-shape[axis], shape[axis], chosen, np.int64)
        indices = self.constant(values) if self.maybe() else self.input(chosen, np.asarray(values, np.int64))
        self.add("Gather", [x, indices], (*shape[:axis], *chosen, *shape[axis + 1 :]), axis=axis)

    def _pad(self) -> None:
        x = self.tensor(1, 4)
        shape = self.shapes[x]
        mode = self.pick(("constant", "constant", "edge", "reflect"))
        before = [self.integer(0, min(2, e - 1)) for e in shape]
        after = [self.integer(0, min(2, e - 1)) for e in shape]
        left = tuple(b + e + a for b, e, a in zip(before, shape, after, strict=True))
        if math.prod(left) <= 2 * MOST_ELEMENTS:
            fill = [self._scalar(0.5)] if mode == "constant" and self.maybe() else []
            self.add("Pad", [x, self.ints(*before, *after), *fill], left, mode=mode)

    def _where(self) -> None:
        x = self.tensor()
        shape = self.shapes[x]
        mask = self.constant(self.random.integers(0, 2, shape).astype(bool))
        self.add("Where", [mask, x, self.weights((), 1)], shape)

    def _expand(self) -> None:
        x = self.tensor(1, 3)
        shape = tuple(self.pick((2, 3, 4)) if e == 1 else e for e in self.shapes[x])
        if math.prod(shape) <= MOST_ELEMENTS:
            self.add("Expand", [x, self.ints(*shape)], shape)


def _fits(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    return len(shape) == len(other) and all(
        a == b or i == axis for i, (a, b) in enumerate(zip(shape, other, strict=True))
    )


OFTEN = ("binary", "matmul", "conv", "reshape", "transpose")
ONCE = ("unary", "reduction", "softmax", "layer_norm", "pool", "slice", "shift", "concat", "split", "gather", "pad")
KINDS = (*OFTEN, *OFTEN, *ONCE, "where", "expand", "attention")


@st.composite
def models(draw: st.DrawFn, most_steps: int = 7) -> Model:
    """Models of up to `most_steps` operators (and their helpers), with one to three outputs.

    A model of fewer steps begins like one of more steps and the same seed, so that a failing one shrinks.
    """
    steps = draw(st.integers(3, most_steps) | st.integers(1, 2))
    builder = Builder(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    builder.input(builder.shape(1, 4))
    for _ in range(steps):
        builder.step()
    if not builder.nodes:
        builder._unary()
    made = [name for node in builder.nodes for name in node.output]
    outputs = list(dict.fromkeys([made[-1], *(str(builder.pick(made)) for _ in range(builder.integer(0, 2)))]))
    described = [helper.make_tensor_value_info(n, TensorProto.FLOAT, builder.shapes[n]) for n in outputs]
    graph = helper.make_graph(builder.nodes, "drawn", builder.inputs, described, builder.constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(proto, full_check=True)
    return Model(proto, builder.feeds)
