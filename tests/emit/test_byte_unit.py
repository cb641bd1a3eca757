"""Products of bytes by the processor's matrix unit: equal to those without it, and to exact sums."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import smartmem_rules
from smartmem_rules.runtime.processor.matrix_unit import has_byte_unit
from smartmem_rules.runtime.programs import compiling

# rows, steps of k and columns: whole registers and rests of each, one row, columns for every number of registers
SHAPES = ((16, 64, 16), (14, 68, 32), (33, 128, 48), (40, 132, 64), (1, 256, 32), (50, 196, 100))


def product(shape: tuple[int, int, int], zero: int) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """A model, its input, and the exact product."""
    rows, depth, columns = shape
    random = np.random.default_rng([*shape, zero])
    left = random.integers(0, 256, (rows, depth)).astype(np.uint8)
    right = random.integers(-128, 128, (depth, columns)).astype(np.int8)
    node = helper.make_node("MatMulInteger", ["a", "b", "z"], ["y"])
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, [rows, depth])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [rows, columns])],
        [numpy_helper.from_array(right, "b"), numpy_helper.from_array(np.uint8(zero), "z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model, left, (left.astype(np.int64) - zero) @ right.astype(np.int64)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("zero", [0, 7, 255])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_exact(shape: tuple[int, int, int], zero: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, left, exact = product(shape, zero)
    with_unit = smartmem_rules.optimize(model)
    np.testing.assert_array_equal(with_unit.run({"a": left})["y"], exact)
    monkeypatch.setattr(compiling, "has_byte_unit", lambda: False)
    np.testing.assert_array_equal(smartmem_rules.optimize(model, anew=True).run({"a": left})["y"], exact)


def test_debug_builds_check_the_same_products() -> None:
    model, left, exact = product((33, 128, 48), 7)
    np.testing.assert_array_equal(smartmem_rules.optimize(model, debug=True).run({"a": left})["y"], exact)


def test_kernels_ask_for_the_unit_only_where_rows_are_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    real = compiling.options_of
    monkeypatch.setattr(compiling, "has_byte_unit", lambda: False)
    monkeypatch.setattr(compiling, "options_of", lambda *given: asked.append(real(*given)) or asked[-1])
    for depth, deep in ((64, True), (32, False)):
        model, left, exact = product((16, depth, 16), 0)
        plan = smartmem_rules.optimize(model)
        assert ("#ifdef SMR_BYTE_TILES" in plan.plan.sources[0].text) == (deep and has_wide_registers(plan))
        np.testing.assert_array_equal(plan.run({"a": left})["y"], exact)
    assert all("-DSMR_BYTE_TILES" not in options for options in asked)


def has_wide_registers(plan: smartmem_rules.Optimized) -> bool:
    """Whether the device has vectors of 16 lanes, as every processor with the unit has."""
    return "int16" in plan.plan.sources[0].text.partition("__kernel")[2]


@pytest.mark.skipif(not has_byte_unit(), reason="the processor has no matrix unit for bytes")
def test_options_name_the_unit() -> None:
    model, _, _ = product((16, 64, 16), 0)
    plan = smartmem_rules.optimize(model)
    device = plan.prepare().device
    assert "-DSMR_BYTE_TILES" in compiling.options_of(plan.plan.sources[0], device)
