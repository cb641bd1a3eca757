"""The model as two graphs: one takes prompts and has no past, the other takes the next tokens behind a cache.

The cache has the positions first, [positions, sequences, heads, channels]: what is there stays where it is when it
grows. Both graphs hold the rows of one token for each sequence only, and choose from its logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.decoding.choosing import ALL, GREATEST, Array, Selection
from smartmem_rules.decoding.model.growth import COUNTED, WHOLE, Growth
from smartmem_rules.decoding.model.interface import CACHE_PLACES, LOGITS, MASK, POSITIONS, CachedTensor, Interface
from smartmem_rules.decoding.model.parts import OWN, Part, parts_of
from smartmem_rules.decoding.model.unchanging import Given, keep_needed, read_in_steps
from smartmem_rules.graph.loading import DEFAULT_DOMAIN, opsets
from smartmem_rules.records import dataclass

SEQUENCE, PAST = "sequence", "past"
"""The open dimensions: tokens of a prompt, tokens in the cache."""
LAST, MASK_BEFORE, MASK_NEW = "decoding.last", "decoding.mask_before", "decoding.mask_new"
TOKEN, VALUES, PLACES = "decoding.token", "decoding.values", "decoding.places"
COUNTS = "decoding.counts"
"""Of a step that puts new rows behind as many positions as a sequence has: how many these are."""
LARGE = 1024
"""Elements of constants that a shape may be computed from."""
_END = np.iinfo(np.int64).max
_STEPS, _LEAST = 127.0, float(np.finfo(np.float32).tiny)
"""The largest integer of a rounded row, and the least scale."""
_AXES_ARE_INPUTS = 18
"""The version of ONNX's operators from which on `ReduceMax` has its axes as an input."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a graph is for.

    Attributes:
        sequences: how many there are.
        behind: whether it computes one token for each sequence behind a cache, or whole prompts without one.
        growth: behind a cache, where its new rows are; unless it is written anew, they are all that the step gives.
        cache: the type in which the cache is kept (`parts.TYPES`).
        given: what it reads that stays the same over the steps.
    """

    sequences: int
    behind: bool
    selection: Selection
    growth: Growth = WHOLE
    cache: str = OWN
    given: tuple[Given, ...] = ()


def make_step(model: onnx.ModelProto, interface: Interface, step: Step) -> None:
    """Turn a model into one step."""
    builder = _Builder(model.graph, interface, step, opsets(model).get(DEFAULT_DOMAIN, 0))
    builder.inputs()
    builder.outputs()
    if step.given:
        keep_needed(model.graph)


def without_weights(model: onnx.ModelProto) -> None:
    """Turn large constants into inputs, for who asks for the equations alone."""
    kept = []
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= LARGE:
            kept.append(tensor)
        elif tensor.name not in {value.name for value in model.graph.input}:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            model.graph.input.append(value)
    small = onnx.GraphProto()
    small.initializer.extend(kept)
    del model.graph.initializer[:]
    model.graph.initializer.extend(small.initializer)


class _Builder:
    def __init__(self, graph: onnx.GraphProto, interface: Interface, step: Step, opset: int) -> None:
        self.graph = graph
        self.opset = opset
        self.interface = interface
        self.step = step
        self.before: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        self.new: int | str = 1 if step.behind else SEQUENCE

    def inputs(self) -> None:
        """Inputs with the extents of the step in the place of the model's."""
        fed = {self.interface.tokens, MASK, POSITIONS, CACHE_PLACES, *(tensor.past for tensor in self.interface.cached)}
        read_in_steps(self.graph, self.step.given, fed)
        sequences = self.step.sequences
        self._input(self.interface.tokens, [sequences, self.new])
        self._input(LAST, [sequences, 1])
        if self.interface.positions:
            self._input(POSITIONS, [sequences, self.new])
        if self.interface.mask:
            self._mask()
        if self.interface.places:
            self._places()
        for tensor in self.interface.cached:
            self._past(tensor)

    def outputs(self) -> None:
        """The chosen logits and the cache in the place of the model's outputs."""
        del self.graph.output[:]
        self.after.append(helper.make_node("GatherND", [LOGITS, LAST], ["decoding.row"], batch_dims=1))
        selection = self.step.selection
        if selection.kind == GREATEST:
            self.after.append(helper.make_node("ArgMax", ["decoding.row"], [TOKEN], axis=-1, keepdims=0))
            self._output(TOKEN, TensorProto.INT64)
        elif selection.kind == ALL:
            self.after.append(helper.make_node("Identity", ["decoding.row"], [VALUES]))
            self._output(VALUES, TensorProto.FLOAT)
        else:
            count = self._constant("decoding.count", [selection.count])
            self.after.append(helper.make_node("TopK", ["decoding.row", count], [VALUES, PLACES], axis=-1))
            self._output(VALUES, TensorProto.FLOAT)
            self._output(PLACES, TensorProto.INT64)
        if self.step.behind and self.step.growth.kind == COUNTED:
            self._counts()
        for tensor in self.interface.cached:
            self._present(tensor)
        nodes = [*self.before, *self.graph.node, *self.after]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        del self.graph.value_info[:]  # its shapes are those of the whole model

    def _mask(self) -> None:
        """Which tokens count: those of the past and the new ones come apart, so that each extent has a name."""
        sequences = self.step.sequences
        if not self.step.behind:
            self._input(MASK, [sequences, self.new])
            return
        self._input(MASK_BEFORE, [sequences, PAST])
        self._input(MASK_NEW, [sequences, self.new])
        self.before.append(helper.make_node("Concat", [MASK_BEFORE, MASK_NEW], [MASK], axis=1))

    def _places(self) -> None:
        """The places of new tokens: one behind as many as there are in the cache, or those of a prompt from 0 on."""
        if self.step.behind:
            tensor, shape = self.interface.cached[0], "decoding.places.shape"
            axis = self._constant(f"decoding.axis_{tensor.axis}", [tensor.axis])
            self.before.append(helper.make_node("Shape", [tensor.past], [shape]))
            self.before.append(helper.make_node("Gather", [shape, axis], [CACHE_PLACES]))
            return
        shape, count = "decoding.places.shape", "decoding.places.count"
        zero, one = (self._held(f"decoding.whole_{n}", np.array(n, np.int64)) for n in (0, 1))
        self.before.append(helper.make_node("Shape", [self.interface.tokens], [shape]))
        self.before.append(helper.make_node("Gather", [shape, one], [count]))
        self.before.append(helper.make_node("Range", [zero, count, one], [CACHE_PLACES]))

    def _past(self, tensor: CachedTensor) -> None:
        shape = list(tensor.shape)
        shape[0] = self.step.sequences
        if not self.step.behind:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.dtype)
            self.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, dtype), tensor.past))
            return
        order = _positions_first(tensor)
        parts = parts_of(tensor, self.step.cache)
        for part in parts:
            self._input(part.input, [PAST, self.step.sequences, *part.shape], part.dtype)
        held = parts[0].input if len(parts) == 1 else self._unrounded(parts, tensor)
        back = [order.index(axis) for axis in range(len(order))]
        self.before.append(helper.make_node("Transpose", [held], [tensor.past], perm=back))

    def _unrounded(self, parts: Sequence[Part], tensor: CachedTensor) -> str:
        """Integers times the scales of their rows."""
        factors = [f"{part.input}.factor" for part in parts]
        for part, factor in zip(parts, factors, strict=True):
            self.before.append(helper.make_node("Cast", [part.input], [factor], to=tensor.dtype))
        held = f"{parts[0].input}.held"
        self.before.append(helper.make_node("Mul", factors, [held]))
        return held

    def _present(self, tensor: CachedTensor) -> None:
        parts = parts_of(tensor, self.step.cache)
        rows = parts[0].output if len(parts) == 1 else f"{parts[0].output}.rows"
        if self.step.behind and self.step.growth.kind == COUNTED:
            self._row_at_counts(tensor, rows)
        else:
            source = self._new_rows(tensor) if self.step.behind and self.step.growth.in_place else tensor.present
            self.after.append(helper.make_node("Transpose", [source], [rows], perm=_positions_first(tensor)))
        if len(parts) > 1:
            self._rounded(parts, rows)
        for part in parts:
            self._output(part.output, part.dtype)

    def _new_rows(self, tensor: CachedTensor) -> str:
        """The present behind the past."""
        name = f"decoding.{tensor.present}"
        source, shape, place = f"{name}.new", f"{name}.shape", f"{name}.start"
        extent = self._constant("decoding.end", [_END])
        axis = self._constant(f"decoding.axis_{tensor.axis}", [tensor.axis])
        self.after.append(helper.make_node("Shape", [tensor.past], [shape]))
        self.after.append(helper.make_node("Gather", [shape, axis], [place]))
        self.after.append(helper.make_node("Slice", [tensor.present, place, extent, axis], [source]))
        return source

    def _counts(self) -> None:
        """How many positions each sequence has, as the model says."""
        whole, shape = "decoding.counts.whole", self._constant("decoding.counts.shape", [self.step.sequences, 1])
        self.after.append(helper.make_node("Cast", [self.step.growth.counts], [whole], to=TensorProto.INT64))
        self.after.append(helper.make_node("Reshape", [whole, shape], [COUNTS]))
        self._output(COUNTS, TensorProto.INT64)

    def _row_at_counts(self, tensor: CachedTensor, rows: str) -> None:
        """The row of each sequence that stands behind as many as it has."""
        order = [0, tensor.axis, *(axis for axis in range(1, len(tensor.shape)) if axis != tensor.axis)]
        turned, found = f"{rows}.turned", f"{rows}.found"
        own = parts_of(tensor, OWN)[0].shape
        shape = self._constant(f"decoding.row_{'_'.join(map(str, own))}", [1, self.step.sequences, *own])
        self.after.append(helper.make_node("Transpose", [tensor.present], [turned], perm=order))
        self.after.append(helper.make_node("GatherND", [turned, COUNTS], [found], batch_dims=1))
        self.after.append(helper.make_node("Reshape", [found, shape], [rows]))

    def _rounded(self, parts: Sequence[Part], rows: str) -> None:
        """Rows as integers, and their scales: the largest magnitude over 127, and no scale that divides to zero."""
        integers, scale = (part.output for part in parts)
        wide, size, most, ratio, whole = (f"{rows}.{name}" for name in ("wide", "size", "most", "ratio", "whole"))
        self.after.append(helper.make_node("Cast", [rows], [wide], to=TensorProto.FLOAT))
        self.after.append(helper.make_node("Abs", [wide], [size]))
        last = len(parts[0].shape) + 1
        if self.opset < _AXES_ARE_INPUTS:
            self.after.append(helper.make_node("ReduceMax", [size], [most], axes=[last], keepdims=1))
        else:
            axes = self._constant(f"decoding.axis_{last}", [last])
            self.after.append(helper.make_node("ReduceMax", [size, axes], [most], keepdims=1))
        steps = self._float("decoding.steps", _STEPS)
        self.after.append(helper.make_node("Div", [most, steps], [ratio]))
        self.after.append(helper.make_node("Max", [ratio, self._float("decoding.least", _LEAST)], [scale]))
        divided = f"{rows}.divided"
        self.after.append(helper.make_node("Div", [wide, scale], [divided]))
        self.after.append(helper.make_node("Round", [divided], [whole]))
        self.after.append(helper.make_node("Cast", [whole], [integers], to=TensorProto.INT8))

    def _float(self, name: str, value: float) -> str:
        return self._held(name, np.array(value, np.float32))

    def _constant(self, name: str, values: Sequence[int]) -> str:
        return self._held(name, np.array(values, np.int64))

    def _held(self, name: str, values: Array) -> str:
        if all(tensor.name != name for tensor in self.graph.initializer):
            self.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def _input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.INT64) -> None:
        self.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))

    def _output(self, name: str, dtype: int) -> None:
        self.graph.output.append(helper.make_tensor_value_info(name, dtype, None))


def _positions_first(tensor: CachedTensor) -> list[int]:
    return [tensor.axis, *(axis for axis in range(len(tensor.shape)) if axis != tensor.axis)]
