"""Chains of operators, and rows, that are longer than recursion and stacks are deep."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import smartmem_rules as sm
from smartmem_rules.plan.fusion.depth import DEEPEST
from smartmem_rules.plan.fusion.on_chip.rows import LARGEST_ROW


def chain(operators: list[str], extents: list[int]) -> onnx.ModelProto:
    nodes = [helper.make_node(name, [f"t{k}"], [f"t{k + 1}"]) for k, name in enumerate(operators)]
    ends = [helper.make_tensor_value_info(n, 1, extents) for n in ("t0", f"t{len(operators)}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("count", [DEEPEST // 6, 3 * DEEPEST])
def test_a_chain_of_many_operators_is_planned_and_right(count: int) -> None:
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    operators = ["Tanh", "Neg"] * (count // 2)
    wanted = x.astype(np.float64)
    for name in operators:
        wanted = np.tanh(wanted) if name == "Tanh" else -wanted
    (found,) = sm.optimize(chain(operators, [4, 8])).run({"t0": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=2e-6 * count)


ROW = """<ir_version: 8, opset_import: ["" : 17]>
f (float[{0}, 1] x) => (float[{0}, 1] y) {{ a = Softmax <axis = -2> (x)  y = ReduceLogSumExp <axes = [1]> (a) }}"""


@pytest.mark.parametrize("extent", [16_359, 8 * LARGEST_ROW])
@pytest.mark.parametrize("device", ["pocl", "nvidia"])
def test_a_row_that_no_stack_holds_is_right(device: str, extent: int) -> None:
    """The terms of the second reduction are kept by each work-item of a group, or computed again."""
    x = np.random.default_rng(2).standard_normal((extent, 1)).astype(np.float32)
    plan = sm.optimize(onnx.parser.parse_model(ROW.format(extent)), device=device)
    shares = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(plan.run({"x": x})["y"], shares / shares.sum(), rtol=1e-3)
