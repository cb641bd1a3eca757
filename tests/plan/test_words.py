"""Weights of few bits stay packed in words where a template unpacks them, and are right everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import smartmem_rules as sm
from smartmem_rules.graph.model import GraphError
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.words import packed_words
from tests.plan.models import Array, normal
from tests.plan.quantised import RANGES, Weights, dequantized, n_bits
from tests.plan.running import LEVELS, MEMORIES, Mode, plan_of, run

CPU = Mode("smartmem")


def constants(plan: Plan) -> set[str]:
    """How the constants of a plan are stored."""
    return {one.storage for one in plan.tensors.values() if one.role == "constant"}


def agrees(model: onnx.ModelProto, weights: Weights, rows: int, mode: Mode = CPU) -> None:
    x = normal(rows, len(weights.integers), seed=rows)
    found = run(model, mode, {"x": x})["y"]
    expected = x.astype(np.float64) @ weights.exact
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def symmetric(weights: Weights, bits: int) -> Weights:
    return Weights(
        integers=weights.integers,
        scales=weights.scales,
        zeros=np.full_like(weights.zeros, 2 ** (bits - 1)),
        block=weights.block,
    )


SHAPES = [(1, 256, 130), (1, 300, 77), (7, 200, 48), (40, 160, 50)]
SOME = [(4, 32, *SHAPES[1]), (8, 128, *SHAPES[3]), (2, 16, *SHAPES[2])]
MANY = [
    pytest.param(*case, marks=pytest.mark.exhaustive)
    for case in ((bits, block, *shape) for bits in (2, 4, 8) for block in (16, 32, 128) for shape in SHAPES)
    if case not in SOME
]


@pytest.mark.covering
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_integers_become_floats_at_their_places_in_a_word(bits: int, rows: int) -> None:
    """One zero point for all: several integers of a word take one shift. The last block ends within a word."""
    weights = symmetric(Weights.drawn(126, 70, 32, 0, 2**bits - 1, seed=bits), bits)
    agrees(n_bits(weights, rows, bits, zeros=True), weights, rows)


@pytest.mark.parametrize(("bits", "block", "rows", "depth", "columns"), [*SOME, *MANY])
def test_products_of_all_shapes_are_those_of_the_unpacked_weights(
    bits: int, block: int, rows: int, depth: int, columns: int
) -> None:
    weights = Weights.drawn(depth, columns, block, 0, 2**bits - 1, seed=depth)
    model = n_bits(weights, rows, bits, zeros=True)
    agrees(model, weights, rows)
    assert constants(plan_of(model, CPU)) == {"uint32", "float32", "uint8"}


def test_zero_points_that_are_all_equal_take_no_memory() -> None:
    weights = symmetric(Weights.drawn(96, 64, 32, 0, 15), 4)
    model = n_bits(weights, 1, 4, zeros=False)
    agrees(model, weights, 1)
    assert constants(plan_of(model, CPU)) == {"uint32", "float32"}


@pytest.mark.parametrize(
    ("dtype", "transposed", "depth", "block"),
    [("int8", False, 2100, 2100), ("uint4", True, 96, 32)]
    + [
        pytest.param(dtype, transposed, depth, block, marks=pytest.mark.exhaustive)
        for dtype in RANGES
        for transposed in (False, True)
        for depth, block in ((2100, 2100), (96, 32))
    ],
)
def test_dequantized_weights_of_a_product_stay_packed(dtype: str, transposed: bool, depth: int, block: int) -> None:
    weights = Weights.drawn(depth, 50, block, *RANGES[dtype])
    model = dequantized(weights, 3, dtype, transposed)
    agrees(model, weights, 3)
    assert constants(plan_of(model, CPU)) == {"uint32", "float32", "uint8"}


@pytest.mark.parametrize(
    "mode",
    [
        *(pytest.param(Mode(level, memory), marks=pytest.mark.exhaustive) for level in LEVELS for memory in MEMORIES),
        Mode(device="gpu"),
        Mode(device="adreno_740", memory="image"),
        Mode(dtype="float16"),
    ],
    ids=str,
)
def test_other_templates_unpack_them_when_the_plan_is_made(mode: Mode) -> None:
    weights = Weights.drawn(128, 96, 32, 0, 15)
    x = normal(5, 128)
    expected = x.astype(np.float64) @ weights.exact
    near = (2e-3 if mode.dtype == "float16" else 2e-6) * np.abs(expected).max()
    for model in (n_bits(weights, 5, 4, zeros=True), dequantized(weights, 5, "uint4")):
        np.testing.assert_allclose(run(model, mode, {"x": x})["y"], expected, rtol=0, atol=near)


@pytest.mark.parametrize("rule", ["weights_in_words", "weights_of_few_bits"])
def test_without_the_schedule_or_the_rule_they_are_floats(rule: str) -> None:
    model = dequantized(Weights.drawn(128, 96, 32, 0, 15), 5, "uint4")
    plan = sm.optimize(model, device="pocl", disable=[rule]).plan
    assert constants(plan) == {"float32"}


def test_a_plan_file_is_less_than_a_third_of_the_weights_in_halves(tmp_path: Path) -> None:
    weights = symmetric(Weights.drawn(2048, 720, 32, 0, 15), 4)
    plan = sm.optimize(n_bits(weights, 1, 4, zeros=False), device="pocl")
    plan.save(tmp_path / "packed.plan")
    assert (tmp_path / "packed.plan").stat().st_size < 0.35 * 2 * weights.integers.size
    x = normal(1, 2048)
    again = sm.load(tmp_path / "packed.plan")
    np.testing.assert_array_equal(again.run({"x": x})["y"], plan.run({"x": x})["y"])


@pytest.mark.parametrize("rows", [1, 16])
def test_results_are_those_of_onnxruntime(rows: int) -> None:
    weights = Weights.drawn(512, 64, 32, 0, 15)
    model = n_bits(weights, rows, 4, zeros=True)
    x = normal(rows, 512)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found = run(model, CPU, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_kernels_of_a_debug_build_stay_inside_the_words() -> None:
    weights = Weights.drawn(300, 77, 32, 0, 15)
    x = normal(3, 300)
    found = run(n_bits(weights, 3, 4, zeros=True), CPU, {"x": x}, debug=True)["y"]
    np.testing.assert_allclose(found, x @ weights.exact, rtol=0, atol=1e-4)


OWN = """
operator Unpack(w: uint8[B, K, N], scale: float32[B, G, N]) -> y: float32[B, K, N] {
    onnx my.ops::Unpack ;
    require ceil_div(K, 16) <= G
    y[b, k, n] = (cast(w[b, k, n], float32) - 7) * scale[b, k // 16, n]
}
keep own Unpack defers
"""


@pytest.mark.parametrize("batched", [False, True])
def test_weights_of_an_operator_of_ones_own_stay_packed(tmp_path: Path, batched: bool) -> None:
    random = np.random.default_rng(0)
    integers = random.integers(0, 16, (3, 64, 80)).astype(np.uint8)
    scales = random.random((3, 4, 80)).astype(np.float32)
    shape = (3, 2, 64) if batched else (2, 64)
    graph = helper.make_graph(
        [
            helper.make_node("Unpack", ["w", "s"], ["f"], "unpack", domain="my.ops"),
            helper.make_node("MatMul", ["x", "f"], ["y"], "product"),
        ],
        "own",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (3, 2, 80))],
        [numpy_helper.from_array(integers, "w"), numpy_helper.from_array(scales, "s")],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    (tmp_path / "own.smr").write_text(OWN)
    made = helper.make_model(graph, opset_imports=imports)
    plan = sm.optimize(made, rules=[tmp_path / "own.smr"], device="pocl")
    x = normal(*shape)
    expected = x.astype(np.float64) @ ((integers - 7.0) * scales.repeat(16, axis=1))
    np.testing.assert_allclose(plan.run({"x": x})["y"], expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    assert constants(plan.plan) == {"uint32", "float32"}


# --- numbers that words do not hold ---


def given(scale: float = 0.5, zero: float = 3.0) -> tuple[Array, Array, Array]:
    integers = np.arange(64 * 2, dtype=np.float32).reshape(1, 64, 2) % 16
    return integers, np.full((1, 2, 2), zero, np.float32), np.full((1, 2, 2), scale, np.float32)


def test_words_hold_neighbouring_steps_from_the_lowest_bits_on() -> None:
    integers, zero, scale = given()
    found = packed_words(integers, zero, scale, block=32, columns=2, widths=(2, 4, 8))
    assert found is not None
    assert (found.bits, found.zeros, found.words.shape) == (4, 3, (1, 1, 8, 2))
    steps = [found.words[0, 0, n // 8, 1] >> np.uint32(n % 8 * 4) & np.uint32(15) for n in range(64)]
    np.testing.assert_array_equal(steps, integers[0, :, 1])


@pytest.mark.parametrize(
    ("scale", "zero"), [(np.nan, 3), (np.inf, 3), (0.5, 2.5), (0.5, np.nan), (0.5, 300), (1e38, 3)]
)
def test_numbers_that_kernels_would_round_or_lose_are_left_to_floats(scale: float, zero: float) -> None:
    assert packed_words(*given(scale, zero), block=32, columns=2, widths=(2, 4, 8)) is None


def test_integers_of_too_many_bits_are_left_to_floats() -> None:
    integers, zero, scale = given()
    assert packed_words(integers * 100, zero, scale, block=32, columns=2, widths=(2, 4, 8)) is None
    assert packed_words(integers, zero, scale, block=7, columns=2, widths=(2, 4, 8)) is None


def test_a_scale_that_is_no_number_is_refused() -> None:
    weights = Weights.drawn(128, 48, 32, 0, 15)
    weights.scales[1, 3] = np.nan
    with pytest.raises(GraphError, match="a finite number"):
        plan_of(n_bits(weights, 2, 4, zeros=True), CPU)


def test_scales_in_another_order_than_blocks_are_left_to_floats() -> None:
    """`g_idx` names the block of each step."""
    weights = symmetric(Weights.drawn(128, 48, 32, 0, 15), 4)
    model = n_bits(weights, 2, 4, zeros=False)
    order = (np.arange(128) * 5 % 4).astype(np.int32)
    model.graph.initializer.append(numpy_helper.from_array(order, "g"))
    model.graph.node[0].input.extend(["", "g"])
    x = normal(2, 128)
    exact = (weights.integers - 8) * weights.scales.astype(np.float64)[order]
    np.testing.assert_allclose(run(model, CPU, {"x": x})["y"], x @ exact, rtol=0, atol=1e-4)
    assert constants(plan_of(model, CPU)) == {"float32"}


def test_one_kernel_computes_a_product_with_zero_points() -> None:
    """Zero points are unpacked when the plan is made, not by a kernel of their own."""
    plan = plan_of(n_bits(Weights.drawn(128, 96, 32, 0, 15), 1, 4, zeros=True), CPU)
    assert len(plan.launches) == 1


def test_small_weights_are_floats() -> None:
    plan = plan_of(n_bits(Weights.drawn(64, 8, 32, 0, 15), 1, 4, zeros=True), CPU)
    assert constants(plan) == {"float32"}


def test_no_vector_of_words_is_read_where_it_is_not_aligned() -> None:
    plan = plan_of(n_bits(Weights.drawn(300, 77, 32, 0, 15), 1, 4, zeros=True), CPU)
    (source,) = plan.sources
    columns = {int(n) for n in re.findall(r"const uint(\d+) w0", source.text)}
    steps = {int(n) for n in re.findall(r"word\) \* (\d+);", source.text)}
    assert all(step % width == 0 for step in steps for width in columns)
