"""Extents that scales give, where the product of both is nearly a whole number."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules


@pytest.mark.parametrize(("operator", "opset"), [("Resize", 18), ("Upsample", 9)])
@pytest.mark.parametrize(("extent", "scale"), [(700, 1.9), (35, 52.285713), (39, 24.666666), (10, 1.1), (30, 7 / 3)])
def test_the_product_is_rounded_to_single_precision(operator: str, opset: int, extent: int, scale: float) -> None:
    operands = ["x", "", "scales"] if operator == "Resize" else ["x", "scales"]
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node(operator, operands, ["y"], mode="linear")],
            "case",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, extent))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [helper.make_tensor("scales", TensorProto.FLOAT, [2], [1, scale])],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    expected = session.run(None, {"x": np.ones((2, extent), np.float32)})[0].shape
    assert import_model(proto, load_rules()).types["y"].shape == expected


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [(7, 50), (61, 13), (23, 23)])
def test_sizes_that_keep_the_aspect(policy: str, sizes: tuple[int, int]) -> None:
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], keep_aspect_ratio_policy=policy)],
            "case",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (9, 31))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [helper.make_tensor("sizes", TensorProto.INT64, [2], sizes)],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    expected = session.run(None, {"x": np.ones((9, 31), np.float32)})[0].shape
    assert import_model(proto, load_rules()).types["y"].shape == expected
