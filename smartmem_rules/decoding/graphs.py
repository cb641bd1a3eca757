"""The model as two graphs: one takes prompts and has no past, the other takes the next tokens behind a cache.

The cache has the positions first, [positions, sequences, heads, channels]: what is there stays where it is when it
grows. Both graphs hold the rows of one token for each sequence only, and choose from its logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.decoding.choosing import ALL, GREATEST, Selection
from smartmem_rules.decoding.interface import LOGITS, MASK, POSITIONS, CachedTensor, Interface

SEQUENCE, PAST = "sequence", "past"
"""The open dimensions: tokens of a prompt, tokens in the cache."""
LAST, MASK_BEFORE, MASK_NEW = "decoding.last", "decoding.mask_before", "decoding.mask_new"
TOKEN, VALUES, PLACES = "decoding.token", "decoding.values", "decoding.places"
_LARGE = 1024
"""Elements of constants that a shape may be computed from."""
_END = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a graph is for.

    Attributes:
        sequences: how many there are.
        behind: whether it computes one token for each sequence behind a cache, or whole prompts without one.
        appends: whether it gives the new rows of the cache only, where it stands behind one.
    """

    sequences: int
    behind: bool
    appends: bool
    selection: Selection


def cache_input(tensor: CachedTensor) -> str:
    """The input of a graph that takes the cached tensor, positions first."""
    return f"decoding.{tensor.past}"


def cache_output(tensor: CachedTensor) -> str:
    """The output of a graph that gives the cached tensor or its new rows, positions first."""
    return f"decoding.{tensor.present}"


def make_step(model: onnx.ModelProto, interface: Interface, step: Step) -> None:
    """Turn a model into one step."""
    builder = _Builder(model.graph, interface, step)
    builder.inputs()
    builder.outputs()


def without_weights(model: onnx.ModelProto) -> None:
    """Turn large constants into inputs, for who asks for the equations alone."""
    kept = []
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= _LARGE:
            kept.append(tensor)
        elif tensor.name not in {value.name for value in model.graph.input}:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            model.graph.input.append(value)
    small = onnx.GraphProto()
    small.initializer.extend(kept)
    del model.graph.initializer[:]
    model.graph.initializer.extend(small.initializer)


class _Builder:
    def __init__(self, graph: onnx.GraphProto, interface: Interface, step: Step) -> None:
        self.graph = graph
        self.interface = interface
        self.step = step
        self.before: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        self.new: int | str = 1 if step.behind else SEQUENCE

    def inputs(self) -> None:
        """Inputs with the extents of the step in the place of the model's."""
        fed = {self.interface.tokens, MASK, POSITIONS, *(tensor.past for tensor in self.interface.cached)}
        kept = [value for value in self.graph.input if value.name not in fed]
        del self.graph.input[:]
        self.graph.input.extend(kept)
        sequences = self.step.sequences
        self._input(self.interface.tokens, [sequences, self.new])
        self._input(LAST, [sequences, 1])
        if self.interface.positions:
            self._input(POSITIONS, [sequences, self.new])
        if self.interface.mask:
            self._mask()
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

    def _past(self, tensor: CachedTensor) -> None:
        shape = list(tensor.shape)
        shape[0] = self.step.sequences
        if not self.step.behind:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.dtype)
            self.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, dtype), tensor.past))
            return
        order = _positions_first(tensor)
        extents: list[int | str] = [PAST, *(shape[axis] for axis in order[1:])]
        self._input(cache_input(tensor), extents, tensor.dtype)
        back = [order.index(axis) for axis in range(len(order))]
        self.before.append(helper.make_node("Transpose", [cache_input(tensor)], [tensor.past], perm=back))

    def _present(self, tensor: CachedTensor) -> None:
        name = cache_output(tensor)
        source = tensor.present
        if self.step.behind and self.step.appends:
            source = f"{name}.new"
            extent = self._constant("decoding.end", [_END])
            shape, place = f"{name}.shape", f"{name}.start"
            axis = self._constant(f"decoding.axis_{tensor.axis}", [tensor.axis])
            self.after.append(helper.make_node("Shape", [tensor.past], [shape]))
            self.after.append(helper.make_node("Gather", [shape, axis], [place]))
            self.after.append(helper.make_node("Slice", [tensor.present, place, extent, axis], [source]))
        self.after.append(helper.make_node("Transpose", [source], [name], perm=_positions_first(tensor)))
        self._output(name, tensor.dtype)

    def _constant(self, name: str, values: Sequence[int]) -> str:
        if all(tensor.name != name for tensor in self.graph.initializer):
            self.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def _input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.INT64) -> None:
        self.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))

    def _output(self, name: str, dtype: int) -> None:
        self.graph.output.append(helper.make_tensor_value_info(name, dtype, None))


def _positions_first(tensor: CachedTensor) -> list[int]:
    return [tensor.axis, *(axis for axis in range(len(tensor.shape)) if axis != tensor.axis)]
