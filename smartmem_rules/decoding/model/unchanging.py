"""What of a model stays the same over the steps: its further inputs, and what is computed of nothing else.

Such tensors (an encoder, the keys and values of its states) are computed once for a call, by a graph of its own. The
graphs of steps read them as inputs.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper

from smartmem_rules.decoding.choosing import Array
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.interface import Further, Interface
from smartmem_rules.graph.expansion.randomness import MAY_DRAW
from smartmem_rules.graph.loading import node_inputs
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Given:
    """A tensor that steps read and that stays as it is over them.

    Attributes:
        dtype: ONNX's number of the element type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: int

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return math.prod(self.shape) * int(self.numpy_dtype.itemsize)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(helper.tensor_dtype_to_np_dtype(self.dtype))


def with_extents(further: Sequence[Further], sequences: int, dims: Mapping[str, int]) -> tuple[Given, ...]:
    """Further inputs with numbers as their extents.

    Args:
        dims: of the open extents, by name.

    Raises:
        GenerateError: an extent has no number, or a number no extent.
    """
    known = {name for one in further for name in one.shape if isinstance(name, str)}
    for name, extent in dims.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "there are none"
            raise GenerateError(
                f"{name} is no open extent of a further input ({listed}); those of prompts and of the cache follow "
                "from the prompts and the bound"
            )
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
            raise GenerateError(f"the extent {name} cannot be {extent!r}; give a number from 1 on")
    missing = sorted(known - dims.keys())
    if missing:
        raise GenerateError(
            f"the further inputs {', '.join(one.name for one in further)} have the open extents {', '.join(missing)}; "
            f"give them (dims={{{missing[0]!r}: N}}, --dim {shlex.quote(missing[0])}=N), or the inputs themselves"
        )
    return tuple(Given(name=one.name, shape=_numbers(one, sequences, dims), dtype=one.dtype) for one in further)


def _numbers(one: Further, sequences: int, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dims[extent] if isinstance(extent, str) else extent or sequences for extent in one.shape)


def dims_of(further: Sequence[Further], inputs: Mapping[str, object]) -> dict[str, int]:
    """The open extents of further inputs that arrays have."""
    found: dict[str, int] = {}
    for one in further:
        shape = np.asarray(inputs[one.name]).shape if one.name in inputs else ()
        if len(shape) == len(one.shape):
            found.update((name, own) for name, own in zip(one.shape, shape, strict=True) if isinstance(name, str))
    return found


def checked_inputs(further: Sequence[Given], inputs: Mapping[str, object] | None) -> dict[str, Array]:
    """The arrays of all further inputs.

    Raises:
        GenerateError: one is missing, unknown, or of another shape or element type.
    """
    given = dict(inputs or {})
    unknown = [name for name in given if name not in {one.name for one in further}]
    if unknown:
        listed = ", ".join(one.name for one in further) or "none"
        raise GenerateError(f"{', '.join(unknown)} is no further input of the model; it has {listed}")
    found = {}
    for one in further:
        if one.name not in given:
            raise GenerateError(
                f"the model has the further input {one.name} {list(one.shape)}, and nothing is given for it; give an "
                f"array (inputs={{{one.name!r}: ...}}, --input {one.name}=FILE.npy)"
            )
        array = np.asarray(given[one.name])
        if array.shape != one.shape or array.dtype != one.numpy_dtype:
            raise GenerateError(
                f"the further input {one.name} is {array.dtype} {list(array.shape)}, and has to be "
                f"{one.numpy_dtype} {list(one.shape)}"
            )
        found[one.name] = array
    return found


def computed_once(graph: onnx.GraphProto, interface: Interface) -> tuple[str, ...]:
    """The tensors computed of further inputs and constants alone that other nodes, or outputs, read."""
    fixed = {one.name for one in interface.further}
    constants = {tensor.name for tensor in graph.initializer}
    made: set[str] = set()
    read = {value.name for value in graph.output}
    for node in graph.node:
        names = set(node_inputs(node))
        if _has_body(node) or node.op_type in MAY_DRAW:
            read |= names
        elif names <= constants:
            constants |= set(node.output)
        elif names <= constants | fixed | made:
            made |= set(node.output)
        else:
            read |= names
    return tuple(name for node in graph.node for name in node.output if name in made & read)


def _has_body(node: onnx.NodeProto) -> bool:
    return any(one.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for one in node.attribute)


def make_once(model: onnx.ModelProto, interface: Interface, further: Sequence[Given], outputs: Sequence[str]) -> None:
    """Turn a model into what is computed once."""
    graph = model.graph
    fed = {interface.tokens, *(tensor.past for tensor in interface.cached)}
    read_in_steps(graph, further, fed)
    del graph.output[:]
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
    del graph.value_info[:]
    keep_needed(graph)


def read_in_steps(graph: onnx.GraphProto, given: Iterable[Given], without: Collection[str]) -> None:
    """Make given tensors inputs with their extents, and drop others."""
    known = {one.name: one for one in given}
    kept = [value for value in graph.input if value.name not in known and value.name not in without]
    del graph.input[:]
    graph.input.extend(kept)
    graph.input.extend(helper.make_tensor_value_info(one.name, one.dtype, one.shape) for one in known.values())


def keep_needed(graph: onnx.GraphProto) -> None:
    """Leave out nodes, constants and inputs without which all outputs can be computed; inputs are not computed."""
    inputs = {value.name for value in graph.input}
    needed = {value.name for value in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if (set(node.output) - inputs) & needed:
            nodes.append(node)
            needed |= set(node_inputs(node))
    kept = onnx.GraphProto()
    kept.input.extend(value for value in graph.input if value.name in needed)
    kept.node.extend(reversed(nodes))
    kept.initializer.extend(
        tensor for tensor in graph.initializer if tensor.name in needed and tensor.name not in inputs
    )
    for field in ("node", "initializer", "input"):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(getattr(kept, field))
