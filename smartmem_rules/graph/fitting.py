"""A model fitted to the inputs of a run: open dimensions get extents, sequences and optional values become tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.errors import GraphError
from smartmem_rules.tensor.primitives import Array


class InputError(GraphError):
    """The inputs of a run do not fit the model."""


Signature = tuple[object, ...]
"""What of the inputs decides the plan."""


def run_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that no initializer has a value for."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def as_feed(value: Any) -> Any:
    """An input as arrays: None for an empty optional value, a list of arrays for a sequence."""
    if value is None or isinstance(value, list):
        return None if value is None else [np.asarray(member) for member in value]
    return np.asarray(value)


def is_fitted(model: onnx.ModelProto) -> bool:
    """Whether every input is a tensor whose extents are numbers."""
    return all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.HasField("shape")
        and all(dim.WhichOneof("value") == "dim_value" for dim in value.type.tensor_type.shape.dim)
        for value in run_inputs(model)
    )


def declared_feeds(model: onnx.ModelProto) -> dict[str, Array]:
    """Arrays of the types that the inputs of a fitted model have; they take no memory."""
    arrays: dict[str, Array] = {}
    for value in run_inputs(model):
        tensor = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        arrays[value.name] = np.broadcast_to(np.zeros((), helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape)
    return arrays


def signature(feeds: Mapping[str, object], fixed: Collection[str]) -> Signature:
    """What of the inputs decides the plan: shapes, which optional values are there, and the values of `fixed` ones."""
    return tuple((name, _signature(feeds[name], name in fixed)) for name in sorted(feeds))


def _signature(value: Any, fixed: bool) -> object:
    if isinstance(value, list):
        return tuple(_signature(member, fixed) for member in value)
    if value is None:
        return None
    return value.dtype.name, value.shape, value.tobytes() if fixed else b""


def fitted_model(
    model: onnx.ModelProto, feeds: Mapping[str, object], fixed: Collection[str]
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model for inputs like these, and the inputs that are left to give it.

    Args:
        feeds: an array for each input, a list of arrays for a sequence, None for an empty optional value.
        fixed: inputs that become constants.

    Raises:
        InputError: an input is missing or unknown, or its kind is another one than the model's.
    """
    names = {value.name for value in run_inputs(model)}
    missing, unknown = sorted(names - set(feeds)), sorted(set(feeds) - {value.name for value in model.graph.input})
    if missing or unknown:
        found = [f"the input {name!r} is missing" for name in missing]
        raise InputError("\n".join(found + [f"there is no input {name!r}" for name in unknown]))
    fitted = onnx.ModelProto()
    fitted.CopyFrom(model)
    graph = fitted.graph
    given = [value for value in graph.input if value.name in names]
    kept = [value for value in graph.input if value.name not in names]
    left: dict[str, Array] = {}
    before: list[onnx.NodeProto] = []
    for value in given:
        feed = feeds[value.name]
        if value.name in fixed:
            graph.initializer.append(numpy_helper.from_array(np.asarray(feed), value.name))
            continue
        tensors, nodes = _fitted(value, feed)
        before += nodes
        for name, array in tensors.items():
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            kept.append(helper.make_tensor_value_info(name, dtype, array.shape))
            left[name] = array
    del graph.input[:]
    graph.input.extend(kept)
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return fitted, left


def _fitted(value: onnx.ValueInfoProto, feed: Any) -> tuple[dict[str, Array], Sequence[onnx.NodeProto]]:
    """The tensors that an input consists of, and the nodes that make the input of them."""
    name, type_ = value.name, value.type
    if type_.WhichOneof("value") == "optional_type":
        type_ = type_.optional_type.elem_type
        if feed is None:
            return {}, [helper.make_node("Optional", [], [name], name, type=type_)]
    kind = type_.WhichOneof("value")
    if kind == "sequence_type" and isinstance(feed, list):
        tensors = {f"{name}[{place}]": member for place, member in enumerate(feed)}
        dtype = type_.sequence_type.elem_type.tensor_type.elem_type
        if not tensors:
            return {}, [helper.make_node("SequenceEmpty", [], [name], name, dtype=dtype)]
        return tensors, [helper.make_node("SequenceConstruct", list(tensors), [name], name)]
    if kind != "tensor_type" or feed is None or isinstance(feed, list):
        given = "nothing" if feed is None else "a list" if isinstance(feed, list) else "an array"
        raise InputError(f"the input {name!r} is given {given}; the model takes a {str(kind).removesuffix('_type')}")
    shape = type_.tensor_type.shape.dim
    fits = len(shape) == feed.ndim and all(
        dim.WhichOneof("value") != "dim_value" or dim.dim_value == extent
        for dim, extent in zip(shape, feed.shape, strict=True)
    )
    wanted = helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
    if type_.tensor_type.HasField("shape") and not fits:
        extents = ", ".join(str(dim.dim_value) if dim.WhichOneof("value") == "dim_value" else "?" for dim in shape)
        raise InputError(f"the input {name!r} has shape {list(feed.shape)}; the model takes [{extents}]")
    if feed.dtype != wanted:
        raise InputError(f"the input {name!r} has elements of type {feed.dtype}; the model takes {wanted}")
    return {name: feed}, []
