"""Operators that the rule base does not define but ONNX does, by others: their bodies take their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.primitives import storage_dtype


def is_function(node: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    """Whether ONNX defines the node's operator by others, once the types of its operands are known."""
    return _schema(node, opsets) is not None


def body_of(
    node: onnx.NodeProto, operands: Sequence[TensorType | None], opsets: Mapping[str, int]
) -> onnx.GraphProto | None:
    """The body of a node, with its attributes filled in; None where ONNX does not define the operator by others.

    Args:
        operands: types of the node's inputs, None for an absent one.
        opsets: the model's operator set versions by domain.
    """
    schema = _schema(node, opsets)
    if schema is None:
        return None
    types = [onnx.TypeProto() if t is None else _proto(t) for t in operands]
    function = onnx.FunctionProto()
    try:
        given = [t.SerializeToString() for t in types]
        function.ParseFromString(schema.get_context_dependent_function(node.SerializeToString(), given))
    except (onnx.defs.SchemaError, ValueError):  # the node's inputs or attributes are wrong
        return None
    inputs = [onnx.ValueInfoProto(name=name) for name in function.input]
    outputs = [onnx.ValueInfoProto(name=name) for name in function.output]
    return helper.make_graph(list(function.node), node.op_type, inputs, outputs)


def _schema(node: onnx.NodeProto, opsets: Mapping[str, int]) -> Any:
    """The schema of an operator whose body depends on its operands' types; None for every other operator."""
    domain = domain_of(node.domain)
    try:
        name = "" if domain == DEFAULT_DOMAIN else domain
        schema: Any = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), name)
    except onnx.defs.SchemaError:
        return None
    return schema if schema.has_context_dependent_function else None


def _proto(type_: TensorType) -> onnx.TypeProto:
    dtype = helper.np_dtype_to_tensor_dtype(storage_dtype(type_.dtype))
    return helper.make_tensor_type_proto(dtype, type_.shape)
