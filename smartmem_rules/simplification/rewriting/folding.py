"""What is not computed beforehand, because the file would grow by more than is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import onnx

from smartmem_rules.graph.loading import node_inputs
from smartmem_rules.graph.weights import stored_bytes
from smartmem_rules.simplification.types import Types, is_usable


def too_large(
    model: onnx.ModelProto, types: Types, constants: Mapping[str, onnx.TensorProto], most: int
) -> tuple[dict[int, str], frozenset[str]]:
    """The nodes of constants whose results are larger than `most` bytes, and larger than what they take the place of.

    A constant that other nodes read as well stays in the file, so its bytes are not saved. The second result are the
    tensors that may be computed; of others that are known shape inference does not tell the size.
    """
    readers: dict[str, int] = {}
    for node in model.graph.node:
        for name in set(node_inputs(node)):
            readers[name] = readers.get(name, 0) + 1
    for value in model.graph.output:
        readers[value.name] = readers.get(value.name, 0) + 1
    sizes = {name: stored_bytes(tensor) for name, tensor in constants.items() if tensor.data_type != 8}
    found = {}
    for place, node in enumerate(model.graph.node):
        if any(name not in sizes for name in node.input if name) or node.op_type == "Constant":
            continue
        made = list(_sizes(node.output, types))
        saved = sum(sizes[name] for name in set(node.input) if name and readers[name] == 1)
        if sum(filter(None, made)) > max(most, saved):
            found[place] = reason_of(most)
        elif None not in made:
            sizes.update((name, size) for name, size in zip(node.output, made, strict=True) if size is not None)
    return found, frozenset(sizes)


def reason_of(most: int) -> str:
    """Why a node is not computed beforehand."""
    return f"its result is a constant of more than {most} bytes"


def _sizes(names: Collection[str], types: Types) -> Iterator[int | None]:
    """The bytes of tensors, None where they are not known."""
    for name in names:
        type_ = types.get(name)
        if not name:
            yield 0
        elif not is_usable(type_):
            yield None
        else:
            assert type_ is not None
            tensor = type_.tensor_type
            dims = [dim.dim_value for dim in tensor.shape.dim]
            yield stored_bytes(onnx.TensorProto(data_type=tensor.elem_type, dims=dims)) if math.prod(dims) else 0
