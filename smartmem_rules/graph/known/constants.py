"""What the models hold of known values in their nodes: `Constant` in all of its forms, and sparse tensors."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.graph.model import GraphError
from smartmem_rules.tensor.primitives import Array


def constant_node_value(node: onnx.NodeProto) -> onnx.TensorProto | Array:
    """What a Constant node holds, in any of its forms: the tensor as it is, everything else as an array.

    Raises GraphError for a node that holds nothing.
    """
    if len(node.attribute) != 1:
        raise GraphError(f"the Constant {node.name or node.output[0]!r} holds {len(node.attribute)} values, not one")
    attribute = node.attribute[0]
    match attribute.name:
        case "value":
            tensor: onnx.TensorProto = attribute.t
            return tensor
        case "sparse_value":
            return dense(attribute.sparse_tensor)
        case "value_float":
            return np.asarray(attribute.f, np.float32)
        case "value_floats":
            return np.asarray(attribute.floats, np.float32)
        case "value_int":
            return np.asarray(attribute.i, np.int64)
        case "value_ints":
            return np.asarray(attribute.ints, np.int64)
        case "value_string":
            return np.asarray(attribute.s.decode("utf-8", "replace"), object)
        case "value_strings":
            return np.asarray([s.decode("utf-8", "replace") for s in attribute.strings], object)
        case _:
            raise GraphError(f"the Constant {node.name or node.output[0]!r} holds the unknown form {attribute.name!r}")


def dense(sparse: onnx.SparseTensorProto) -> Array:
    """The array of a sparse tensor."""
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        result.reshape(-1)[indices] = values
    else:
        result[tuple(indices.T)] = values
    return result
