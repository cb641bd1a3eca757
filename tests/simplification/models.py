"""Small models for the tests, and what ONNX Runtime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Feeds = Mapping[str, np.ndarray]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
    others: Sequence[str] = ("com.microsoft",),
    **more: Any,
) -> onnx.ModelProto:
    """A model of float32 inputs; the outputs are declared without a type where the checker does not ask for one."""
    graph = helper.make_graph(
        list(nodes),
        "tested",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    domains = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in others)]
    made = helper.make_model(graph, opset_imports=domains, ir_version=10, **more)
    return onnx.shape_inference.infer_shapes(made)


def run(proto: onnx.ModelProto | str, feeds: Feeds) -> list[Any]:
    """The outputs of a model as it is written."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = proto if isinstance(proto, str) else proto.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def drawn(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)


def kinds(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]
