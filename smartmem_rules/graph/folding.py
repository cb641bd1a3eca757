"""Computes ONNX nodes whose operands are all known, with ONNX's own reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.loading import DEFAULT_DOMAIN
from smartmem_rules.graph.model import GraphError
from smartmem_rules.tensor.primitives import Array


class CannotFold(Exception):
    """The reference implementation does not know the operator or refuses the values."""


class Folder:
    """Runs single nodes; the evaluator of a node is made once for each operator and attribute values."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        newest = onnx.defs.onnx_opset_version()
        self._imports = [
            helper.make_opsetid("", min(version, newest))
            if domain == DEFAULT_DOMAIN
            else helper.make_opsetid(domain, version)
            for domain, version in opsets.items()
        ]
        self._opset = {entry.domain: entry.version for entry in self._imports}
        self._evaluators: dict[tuple[Any, ...], Any] = {}

    def run(self, node: onnx.NodeProto, operands: Sequence[Array | None]) -> list[Array]:
        """The outputs of the node, an empty array where it leaves one out. Raises CannotFold."""
        if not self._deterministic(node):
            raise CannotFold("its result is random")
        key = (
            node.domain,
            node.op_type,
            tuple(attribute.SerializeToString(deterministic=True) for attribute in node.attribute),
            tuple(bool(name) for name in node.output),
            tuple(operand is not None for operand in operands),
        )
        try:
            evaluator = self._evaluators.get(key)
            if evaluator is None:
                evaluator = self._evaluators[key] = self._evaluator(node, operands)
            feeds = {f"i{place}": operand for place, operand in enumerate(operands) if operand is not None}
            with np.errstate(all="ignore"):
                results = iter(evaluator.run(None, feeds))
        except Exception as error:
            raise CannotFold(f"{type(error).__name__}: {error}") from error
        values = [next(results) if name else np.zeros(0) for name in node.output]
        if not all(isinstance(value, np.ndarray | np.generic) for value in values):
            raise CannotFold("its result is no tensor")
        return [np.asarray(value) for value in values]

    def _deterministic(self, node: onnx.NodeProto) -> bool:
        if node.domain not in self._opset:
            return True
        try:
            schema = onnx.defs.get_schema(node.op_type, self._opset[node.domain], node.domain)
        except onnx.defs.SchemaError:
            return True
        determinism = getattr(schema, "node_determinism", None)
        return determinism is None or determinism.name != "NonDeterministic"

    def _evaluator(self, node: onnx.NodeProto, operands: Sequence[Array | None]) -> Any:
        from onnx.reference import ReferenceEvaluator  # importing it takes as long as folding a small model

        renamed = onnx.NodeProto()
        renamed.CopyFrom(node)
        del renamed.input[:], renamed.output[:]
        renamed.input.extend(f"i{place}" if operand is not None else "" for place, operand in enumerate(operands))
        renamed.output.extend(f"o{place}" if name else "" for place, name in enumerate(node.output))
        inputs = [helper.make_tensor_value_info(name, 1, None) for name in renamed.input if name]
        outputs = [helper.make_tensor_value_info(name, 1, None) for name in renamed.output if name]
        graph = helper.make_graph([renamed], "fold", inputs, outputs)
        return ReferenceEvaluator(helper.make_model(graph, opset_imports=self._imports))


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
