"""Draws small ONNX models in which tensors meet themselves: along rows and columns, through views, as several outputs.

To the steps of `tests.plan.random_graphs` come results that are read along more than one axis, chains of views before
windows, windows larger than what they read, ranks up to eight, axes without elements, extents beside powers of two,
outputs that are inputs or are read further, and models of halves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.plan.models import Model
from tests.plan.random_graphs import KINDS, MOST_ELEMENTS, OPSET, Builder

EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127)
MOST_RANK = 8
SHARING = ("cross", "cross", "cross", "rows", "rows", "views", "views", "deep", "turned", "window", "padded", "chosen")


@dataclass
class SharingBuilder(Builder):
    """A builder that also takes the steps that its name says.

    Attributes:
        empty: whether new inputs may have an axis without elements.
    """

    empty: bool = False

    def shape(self, lowest: int = 0, highest: int = 4) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.integer(lowest, highest)):
            room = MOST_ELEMENTS // max(1, math.prod(shape))
            shape.append(self.pick([e for e in EXTENTS if e <= room]))
        if self.empty and shape and self.integer(0, 3) == 0:
            shape[self.integer(0, len(shape) - 1)] = 0
        return tuple(shape)

    def tensor(self, lowest: int = 0, highest: int = 6) -> str:
        """As in the base class, and always one with elements."""
        empty, self.empty = self.empty, False
        name = super().tensor(lowest, highest)
        self.empty = empty
        return name

    def anything(self, lowest: int = 0, highest: int = MOST_RANK) -> str:
        """A tensor that may have no elements."""
        fitting = [n for n, s in self.shapes.items() if lowest <= len(s) <= highest]
        if not fitting or self.integer(0, 9) == 0:
            return self.input(self.shape(lowest, min(highest, 5)))
        return fitting[-1] if self.maybe() else str(self.pick(fitting))

    def step(self) -> None:
        """One more operator, or a few that belong together."""
        getattr(self, f"_{self.pick((*SHARING, *SHARING, *KINDS))}")()

    # --- a tensor that meets itself ---

    def _cross(self) -> None:
        """Two tensors, or one and itself, with ones put between their axes so that both are broadcast."""
        a = self.anything(0, 4)
        b = a if self.integer(0, 2) else self.anything(0, 4)
        first, second = self._spread(a), self._spread(b)
        left, right = self.shapes[first], self.shapes[second]
        rank = max(len(left), len(right))
        shape = []
        for own, other in zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True):
            if own != other and 1 not in (own, other):
                return
            shape.append(own if other == 1 else other)
        if math.prod(shape) <= 3 * MOST_ELEMENTS:
            operator = self.pick(("Add", "Sub", "Max", "Min", "Mul"))
            operands = [first, second] if self.maybe() else [second, first]
            if operator == "Mul":
                operands = [self.add("Tanh", [o], self.shapes[o]) for o in operands]
            self.add(operator, operands, tuple(shape))

    def _spread(self, x: str) -> str:
        """The tensor with up to three axes of extent one, perhaps with its axes turned, or without its ones."""
        shape = self.shapes[x]
        way = self.integer(0, 3)
        if way == 0 or len(shape) > MOST_RANK - 3:
            return x
        if way == 1 and len(shape) > 1:
            perm = self.random.permutation(len(shape)).tolist()
            return self.add("Transpose", [x], tuple(shape[p] for p in perm), perm=perm)
        if way == 2 and 1 in shape:
            axis = self.pick([i for i, e in enumerate(shape) if e == 1])
            return self.add("Squeeze", [x, self.ints(axis)], (*shape[:axis], *shape[axis + 1 :]))
        for _ in range(self.integer(1, 3)):
            axis = self.integer(0, len(self.shapes[x]))
            shape = self.shapes[x]
            x = self.add("Unsqueeze", [x, self.ints(axis)], (*shape[:axis], 1, *shape[axis:]))
        return x

    def _rows(self) -> None:
        """A statistic of rows that meets itself, and the tensor that it is one of."""
        x = self.tensor(1, 5)
        shape = self.shapes[x]
        axes = sorted(self.random.choice(len(shape), self.integer(1, len(shape)), replace=False).tolist())
        keep = self.maybe()
        left = tuple(1 if a in axes else e for a, e in enumerate(shape) if keep or a not in axes)
        operator = self.pick(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"))
        if operator == "ReduceSumSquare":
            x = self.add("Mul", [x, self._scalar(1 / math.sqrt(math.prod(shape)))], shape)
        r = self.add(operator, [x], left, axes=axes, keepdims=int(keep))
        first, second = self._spread(r), self._spread(r)
        both = np.broadcast_shapes
        try:
            joined = both(self.shapes[first], self.shapes[second])
        except ValueError:
            return
        if math.prod(joined) <= 3 * MOST_ELEMENTS:
            self.add(self.pick(("Add", "Sub", "Max")), [first, second], joined)
        if keep and self.maybe():
            self.add("Sub", [x, r], shape)

    # --- views ---

    def _views(self) -> None:
        """A chain of views, with something pointwise in between now and then."""
        for _ in range(self.integer(2, 4)):
            getattr(self, f"_{self.pick(('reshape', 'transpose', 'slice', 'flipped', 'expand', 'deep', 'turned'))}")()
            if self.integer(0, 3) == 0:
                last = list(self.shapes)[-1]
                self.add("Sin", [last], self.shapes[last])

    def _flipped(self) -> None:
        x = self.tensor(1)
        shape = self.shapes[x]
        axis = self.integer(0, len(shape) - 1)
        bounds = self.ints(-1), self.ints(-(10**9)), self.ints(axis), self.ints(-1)
        self.add("Slice", [x, *bounds], shape)

    def _deep(self) -> None:
        """A tensor as one of high rank: its extents divided, and ones among them."""
        x = self.anything()
        shape: list[int] = []
        for extent in self.shapes[x]:
            factors = [f for f in range(1, extent + 1) if extent % f == 0] or [0]
            factor = self.pick(factors)
            shape += [factor, extent // factor] if extent and self.maybe() else [extent]
        while len(shape) < MOST_RANK and self.maybe():
            shape.insert(self.integer(0, len(shape)), 1)
        while len(shape) > MOST_RANK:
            shape[-2:] = [math.prod(shape[-2:])]
        if shape:
            self.add("Reshape", [x, self.ints(*shape)], tuple(shape), allowzero=int(0 in shape))

    def _turned(self) -> None:
        x = self.anything(2)
        perm = self.random.permutation(len(self.shapes[x])).tolist()
        self.add("Transpose", [x], tuple(self.shapes[x][p] for p in perm), perm=perm)

    def _window(self, most_dilation: int = 1) -> tuple[str, list[int], dict[str, object], tuple[int, ...]]:
        """As a step: pooling of a view, by windows that may be larger than it. Else as in the base class."""
        if most_dilation > 1:
            return super()._window(most_dilation)
        self._pooled()
        return super()._window(1)

    def _pooled(self) -> None:
        x = self.tensor(1, 6)
        shape = self.shapes[x]
        axes = self.integer(1, min(2, len(shape)))
        spatial = shape[len(shape) - axes :]
        view = self.add(
            "Reshape", [x, self.ints(1, -1, *spatial)], (1, math.prod(shape[: len(shape) - axes]), *spatial)
        )
        kernel, strides, left = [], [], []
        for extent in spatial:
            size, stride = self.integer(1, 4), self.integer(1, 4)
            if extent - size <= -stride:
                size = extent
            kernel.append(size)
            strides.append(stride)
            left.append((extent - size) // stride + 1 if extent >= size else 1)
        operator = self.pick(("MaxPool", "AveragePool"))
        self.add(operator, [view], (*self.shapes[view][:2], *left), kernel_shape=kernel, strides=strides)

    # --- choices ---

    def _padded(self) -> None:
        """Much padding of few elements, and a function of it: most of the result is known before the model runs."""
        x = self.anything(1, 5)
        shape = self.shapes[x]
        before = [self.pick((0, 0, 1, 2, 7)) for _ in shape]
        after = [self.pick((0, 0, 1, 3, 8)) for _ in shape]
        left = tuple(b + e + a for b, e, a in zip(before, shape, after, strict=True))
        if math.prod(left) <= 2 * MOST_ELEMENTS:
            y = self.add("Pad", [x, self.ints(*before, *after), self._scalar(0.5)], left)
            self.add(self.pick(("Sin", "Cos", "Tanh", "Neg")), [y], left)

    def _chosen(self) -> None:
        x = self.anything()
        shape = self.shapes[x]
        mask = self.constant(self.random.integers(0, 2, tuple(1 if self.maybe() else e for e in shape)).astype(bool))
        other = self._scalar(0.25) if self.maybe() else self.add("Neg", [x], shape)
        self.add("Where", [mask, x, other] if self.maybe() else [mask, other, x], shape)


def sharing_model(seed: int, steps: int, empty: bool) -> Model:
    """A model of so many steps with one to five outputs, some of which may be inputs or read further."""
    builder = SharingBuilder(np.random.default_rng(seed), empty=empty)
    builder.input(builder.shape(0, 5))
    for _ in range(steps):
        builder.step()
    made = [name for node in builder.nodes for name in node.output]
    if not made:
        first = next(iter(builder.shapes))
        made = [builder.add("Neg", [first], builder.shapes[first])]
    chosen = [made[-1], *(str(builder.pick(made)) for _ in range(builder.integer(0, 3)))]
    if builder.integer(0, 7) == 0:
        given = builder.inputs[0].name
        chosen.append(builder.add("Identity", [given], builder.feeds[given].shape))
    outputs = list(dict.fromkeys(chosen))
    described = [helper.make_tensor_value_info(n, TensorProto.FLOAT, builder.shapes[n]) for n in outputs]
    graph = helper.make_graph(builder.nodes, "drawn", builder.inputs, described, builder.constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(proto, full_check=True)
    return Model(proto, builder.feeds)


@st.composite
def sharing_models(draw: st.DrawFn, most_steps: int = 6) -> Model:
    """Models of up to `most_steps` steps; one of fewer steps begins like one of more and the same seed."""
    return sharing_model(draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, most_steps)), draw(st.booleans()))


def in_halves(model: Model) -> tuple[Model, Model]:
    """A model with float16 in place of float32, and the one of float32 over the same (rounded) numbers."""
    half, single = onnx.ModelProto(), onnx.ModelProto()
    half.CopyFrom(model.proto)
    single.CopyFrom(model.proto)
    for value in (*half.graph.input, *half.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for mine, wide in zip(half.graph.initializer, single.graph.initializer, strict=True):
        if mine.data_type == TensorProto.FLOAT:
            rounded = numpy_helper.to_array(mine).astype(np.float16)
            mine.CopyFrom(numpy_helper.from_array(rounded, mine.name))
            wide.CopyFrom(numpy_helper.from_array(rounded.astype(np.float32), mine.name))
    feeds = {n: v.astype(np.float16) if v.dtype == np.float32 else v for n, v in model.feeds.items()}
    rounded_feeds = {n: v.astype(np.float32) if v.dtype == np.float16 else v for n, v in feeds.items()}
    return Model(half, feeds), Model(single, rounded_feeds)
