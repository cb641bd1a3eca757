"""Which models ONNX Runtime runs before the import has said that they are not too large."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.limits import LimitError
from smartmem_rules.simplification.early import may_run_early
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.simplify import simplify_model
from smartmem_rules.simplification.types import elements_of_constants


def doubling(times: int) -> onnx.ModelProto:
    """A constant of one element that is joined to itself so many times, and added to the input."""
    nodes = [helper.make_node("Concat", [f"t{n}", f"t{n}"], [f"t{n + 1}"], axis=0) for n in range(times)]
    nodes.append(helper.make_node("Add", ["x", f"t{times}"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "doubling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(1, np.float32), "t0")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize(("times", "early"), [(3, True), (22, True), (24, False), (40, False)])
def test_what_follows_from_constants_is_counted(times: int, early: bool) -> None:
    model = doubling(times)
    assert elements_of_constants(model) == sum(2**n for n in range(1, times + 1))
    assert may_run_early(model) == early


def test_shapes_in_lists_count() -> None:
    model = doubling(1)
    model.graph.node[0].CopyFrom(helper.make_node("ConstantOfShape", ["s"], ["t1"]))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([10**5, 10**5]), "s"))
    assert not may_run_early(model)


def test_a_model_of_terabytes_is_refused() -> None:
    """Neither ONNX Runtime nor ONNX's inference of elements sees it: both would take all memory."""
    with pytest.raises(LimitError):
        simplify_model(doubling(40), Options())
