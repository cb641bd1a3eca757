"""Models that are encoded tensor by tensor are those that protobuf encodes, and so are their sizes."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.simplification.encoding import encoded_bytes, write_encoded


def with_weights(*elements: int) -> onnx.ModelProto:
    """A model with initializers of some sizes, metadata, functions and an input."""
    weights = [numpy_helper.from_array(np.zeros(n, np.int8), f"w{n}") for n in elements]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"], "n", doc_string="kept")],
        "sizes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        weights,
        doc_string="a graph",
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="tests")
    helper.set_model_props(model, {"key": "value"})
    return model


@pytest.mark.parametrize(
    "elements", [(), (0,), (1, 2), (100,), (127, 128, 129), (16_250, 16_400), (2_097_000, 2_097_300)]
)
def test_a_model_with_weights(elements: tuple[int, ...]) -> None:
    is_encoded_alike(with_weights(*elements))


@pytest.mark.parametrize("model", [onnx.ModelProto(), onnx.ModelProto(ir_version=8), onnx.ModelProto(graph={})])
def test_an_empty_model(model: onnx.ModelProto) -> None:
    is_encoded_alike(model)


def is_encoded_alike(model: onnx.ModelProto) -> None:
    """The size is the same, and what is written reads as the model; the order of its fields may be another."""
    stream = io.BytesIO()
    write_encoded(model, stream)
    assert encoded_bytes(model) == len(stream.getvalue()) == len(model.SerializeToString())
    assert onnx.ModelProto.FromString(stream.getvalue()) == model
