"""Scales and zero points of QuantizeLinear and DequantizeLinear: the shapes that ONNX admits, and those it does not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules as sm

ROWS, COLUMNS = 8, 4


def blocked(operator: str, scale: tuple[int, ...], block_size: int, zero_point: tuple[int, ...] | None) -> bytes:
    """A node whose scale, and zero point if there is one, have these shapes; blocks are of rows."""
    taken, given = (
        (TensorProto.INT8, TensorProto.FLOAT) if operator[0] == "D" else (TensorProto.FLOAT, TensorProto.INT8)
    )
    names = ["x", "s"] if zero_point is None else ["x", "s", "z"]
    constants = [numpy_helper.from_array(np.linspace(0.25, 2, int(np.prod(scale)), dtype="f").reshape(scale), "s")]
    if zero_point is not None:
        constants.append(numpy_helper.from_array(np.full(zero_point, 3, np.int8), "z"))
    node = helper.make_node(operator, names, ["y"], axis=0, block_size=block_size)
    x = helper.make_tensor_value_info("x", taken, (ROWS, COLUMNS))
    y = helper.make_tensor_value_info("y", given, (ROWS, COLUMNS))
    graph = helper.make_graph([node], "g", [x], [y], constants)
    opset = [helper.make_opsetid("", 21)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize(
    ("scale", "block_size"),
    [((5, 4), 2), ((3, 4), 2), ((4, 5), 2), ((4, 3), 2), ((8, 4), 2), ((7,), 0)],
)
def test_a_scale_without_an_element_for_each_block_is_refused(
    operator: str, scale: tuple[int, ...], block_size: int
) -> None:
    with pytest.raises(sm.SmartmemError, match="one for each block of it"):
        sm.optimize(blocked(operator, scale, block_size, scale), device="pocl")


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_a_zero_point_of_another_size_than_the_scale_is_refused(operator: str) -> None:
    with pytest.raises(sm.SmartmemError, match="uantizeLinear requires"):
        sm.optimize(blocked(operator, (ROWS,), 0, (1,)), device="pocl")


@pytest.mark.parametrize(("scale", "block_size"), [((4, 4), 2), ((3, 4), 3), ((2, 4), 5), ((8,), 0), ((1,), 0)])
def test_blocks_at_the_end_may_be_short(scale: tuple[int, ...], block_size: int) -> None:
    plan = sm.optimize(blocked("DequantizeLinear", scale, block_size, scale), device="pocl")
    x = np.arange(-16, 16, dtype=np.int8).reshape(ROWS, COLUMNS)
    steps = np.linspace(0.25, 2, int(np.prod(scale)), dtype="f").reshape(scale)
    if len(scale) == 1:
        steps = np.broadcast_to(steps[:, None], (ROWS, COLUMNS))
    else:
        steps = np.repeat(steps, block_size, 0)[:ROWS]
    np.testing.assert_array_equal(plan.run({"x": x})["y"], (x.astype("f") - 3) * steps)
