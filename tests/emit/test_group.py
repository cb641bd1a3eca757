"""Contractions of GPUs, run on a CPU that stands in for one: tiles, splits, row statistics, attention, siblings."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.emit.contraction import group
from smartmem_rules.environment import VERIFY
from smartmem_rules.invariants.launches import check_launches
from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.language.blocks.schedule import Group
from smartmem_rules.plan.schedule import templates
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, GroupTile, rank_groups
from smartmem_rules.plan.schedule.records import GroupSchedule
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from tests.emit.kernel_cases import launched
from tests.plan.models import model
from tests.plan.running import Mode, agrees, plan_of, prepare, run
from tests.runtime.plans import change_source

pytestmark = pytest.mark.sampled(18)

GPU = Mode(device="nvidia")
TILES = (
    GroupTile(rows=64, columns=64, step=32, slices=2, warp_rows=32, warp_columns=32, buffers=2),
    GroupTile(rows=32, columns=64, step=64, slices=4, warp_rows=32, warp_columns=32, buffers=1),
    GroupTile(rows=16, columns=32, step=128, slices=8, warp_rows=16, warp_columns=32, buffers=1),
)


def _force(monkeypatch: pytest.MonkeyPatch, tile: GroupTile, splits: int) -> None:
    """Products have this tile; such a test is skipped on a device whose local memory does not hold it."""
    needed, device = 4 * tile.memory + 16, choose()
    if device.local_memory < needed:
        pytest.skip(f"the tile takes {needed} bytes of local memory, {device.name} has {device.local_memory}")
    monkeypatch.setattr(templates, "rank_groups", lambda *_: [GroupChoice(tile, splits)])


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _compare(proto: onnx.ModelProto, feeds: dict[str, np.ndarray], kernels: int | None = None) -> list[str]:
    """Runs the plan for a GPU and compares with the reference evaluator; the templates that were used."""
    plan, executor = prepare(proto, GPU)
    found = executor.run({name: feeds[name] for name in plan.inputs})
    wanted = ReferenceEvaluator(proto).run(None, feeds)
    for output, reference in zip(plan.outputs, wanted, strict=True):
        # sums of some thousand products in single precision, in another order
        bound = 2e-6 * np.abs(reference).max() * np.sqrt(1024)
        np.testing.assert_allclose(found[output], reference, rtol=0, atol=bound)
    if kernels is not None:
        assert len(plan.launches) == kernels, [launch.origin for launch in plan.launches]
    return [launched(launch) for launch in plan.launches]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 33, 64), (49, 96, 384), (50, 31, 37), (130, 72, 260)])
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("splits", [1, 3])
def test_products_with_every_tile(
    m: int, n: int, k: int, tile: GroupTile, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _force(monkeypatch, tile, splits)
    x, w, b = _random(1, m, k), _random(2, k, n), _random(3, n)
    proto = model([("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")], {"x": x}, "y", {"w": w, "b": b})
    assert _compare(proto, {"x": x}, 1) == ["group"]


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("splits", [1, 2])
def test_long_products_are_sums_of_partial_sums(tile: GroupTile, splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _force(monkeypatch, tile, splits)
    monkeypatch.setattr(group, "LONGEST_TILE", 64)
    x, w = np.ones((20, 1500), np.float32), np.ones((1500, 36), np.float32)
    x[:, 0] = 2.0**24
    got = run(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), GPU, {"x": x})["y"]
    # the accumulator that begins with 2^24 loses its own terms of 1
    np.testing.assert_allclose(got, 2.0**24 + 1499, rtol=0, atol=64)


def test_a_split_product_runs_again_on_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    _force(monkeypatch, TILES[1], 4)
    x, w = _random(4, 40, 512), _random(5, 512, 64)
    plan, executor = prepare(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), GPU)
    first, second = executor.run({"x": x})["y"], executor.run({"x": x})["y"]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, x @ w, rtol=0, atol=1e-4)
    assert any(isinstance(one.schedule, GroupSchedule) and one.schedule.splits == 4 for one in plan.launches)


def test_work_groups_without_a_step_read_nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four work-groups that share six K steps have two, two, two and none."""
    _force(monkeypatch, TILES[1], 4)
    x, w = _random(1, 30, 384), _random(2, 384, 64)
    _, executor = prepare(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), GPU, debug=True)
    np.testing.assert_allclose(executor.run({"x": x})["y"], x @ w, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("splits", "turns", "work"), [(1, 1, True), (4, 6, False), (3, 6, True), (4, 7, True)])
def test_reductions_are_split_so_that_all_work(splits: int, turns: int, work: bool) -> None:
    demand = GemmShape(m=16, columns=(32,), k=turns * 128, batch=1)
    device = load_rules().devices["nvidia"]
    cycles = next(s.cycles for s in load_rules().schedules.values() if isinstance(s, Group))
    assert bool(rank_groups([TILES[2]], [splits], cycles, demand, device)) == work


def test_a_convolution_reads_its_windows() -> None:
    x, w = _random(6, 1, 20, 13, 11), _random(7, 36, 20, 3, 3)
    proto = model([("Conv", "x w", "y", {"pads": [1, 1, 1, 1], "strides": [2, 2]})], {"x": x}, "y", {"w": w})
    assert _compare(proto, {"x": x}, 1) == ["group"]


@pytest.mark.parametrize("device", ["adreno_740", "nvidia", "gpu"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_images_of_few_channels_are_loaded_by_rows(device: str, dtype: str) -> None:
    x, w = _random(6, 2, 3, 21, 69), _random(7, 36, 3, 7, 7)
    proto = model([("Conv", "x w", "y", {"pads": [3, 3, 3, 3], "strides": [2, 2]})], {"x": x}, "y", {"w": w})
    plan, executor = prepare(proto, Mode(device=device, dtype=dtype, memory="buffer"))
    executor.poison()
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    bound = {"float32": 1e-5, "float16": 4e-3}[dtype] * np.abs(wanted).max()
    np.testing.assert_allclose(executor.run({"x": x})["y"], wanted, rtol=0, atol=bound)
    if device == "nvidia":
        assert "float4 left_next" in plan.sources[-1].text


def test_statistics_of_rows_are_made_by_the_product_that_reads_them() -> None:
    x, g, b, w = _random(8, 50, 96), _random(9, 96), _random(10, 96), _random(11, 96, 80)
    nodes = [("LayerNormalization", "x g b", "h", {"axis": -1}), ("MatMul", "h w", "y")]
    assert _compare(model(nodes, {"x": x}, "y", {"g": g, "b": b, "w": w}), {"x": x}, 1) == ["group"]


def test_siblings_are_columns_of_one_product() -> None:
    x = _random(12, 45, 64)
    weights = {f"w{i}": _random(13 + i, 64, n) for i, n in enumerate((24, 70, 5))}
    nodes = [("MatMul", f"x w{i}", f"y{i}") for i in range(3)]
    assert _compare(model(nodes, {"x": x}, "y0 y1 y2", weights), {"x": x}, 1) == ["group"]


@pytest.mark.parametrize(("tokens", "depth"), [(49, 32), (197, 64), (21, 20)])
def test_an_attention_is_one_kernel(tokens: int, depth: int) -> None:
    q, k, v = (_random(20 + i, 3, tokens, depth) for i in range(3))
    mask = _random(24, 3, tokens, tokens)
    nodes = [
        ("Transpose", "k", "t", {"perm": [0, 2, 1]}),
        ("MatMul", "q t", "s"),
        ("Mul", "s c", "scaled"),
        ("Add", "scaled mask", "biased"),
        ("Softmax", "biased", "p", {"axis": -1}),
        ("MatMul", "p v", "y"),
    ]
    feeds = {"q": q, "k": k, "v": v, "mask": mask}
    assert _compare(model(nodes, feeds, "y", {"c": np.float32(0.2)}), feeds, 1) == ["group"]


def test_rows_are_shared_by_teams() -> None:
    x = _random(30, 7, 300)
    proto = model([("Softmax", "x", "y", {"axis": -1})], {"x": x}, "y")
    assert _compare(proto, {"x": x}, 1) == ["reduction"]


def test_loops_around_those_that_a_team_shares_are_unrolled_only_where_the_compiler_ends() -> None:
    """PoCL 3.0 compiles unrolled loops around one that work-items take in step for minutes (`SMR_NO_UNROLL`)."""
    x = _random(3, 3, 3, 3, 64)
    proto = model([("DynamicQuantizeLinear", "x", "y scale zero")], {"x": x}, "y scale zero")
    shared = [source.text for source in plan_of(proto, GPU).sources if "_turn < " in source.text]
    assert shared
    for text in shared:
        lines = text[text.index("__kernel") :].splitlines()
        unrolled = [n for n, line in enumerate(lines) if "#pragma unroll" in line]
        assert unrolled
        assert all("#ifndef SMR_NO_UNROLL" in lines[n - 1] for n in unrolled), text


def test_rows_that_do_not_fit_in_local_memory() -> None:
    x = _random(32, 2, 30000)
    proto = model([("Exp", "x", "e"), ("Softmax", "e", "y", {"axis": -1})], {"x": x * 0.1}, "y")
    _compare(proto, {"x": x * 0.1}, 1)


def _residual(rows: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Rows that two products need, the second as well as what is added to it: they are stored besides the sums."""
    x, w, v = _random(40, rows, 32), _random(41, 32, 16), _random(42, 16, 32)
    nodes = [
        ("Softmax", "x", "h", {"axis": -1}),
        ("MatMul", "h w", "p"),
        ("Relu", "p", "q"),
        ("MatMul", "q v", "s"),
        ("Add", "s h", "y"),
    ]
    return model(nodes, {"x": x}, "y", {"w": w, "v": v}), {"x": x}


@pytest.mark.parametrize("device", ["adreno_740", "nvidia"])
@pytest.mark.parametrize("memory", ["buffer", "image"])
@pytest.mark.parametrize("rows", [5, 19, 50])
def test_stored_rows_are_right_where_the_last_tile_is_cut(device: str, memory: str, rows: int) -> None:
    proto, feeds = _residual(rows)
    wanted = ReferenceEvaluator(proto).run(None, feeds)[0]
    found = run(proto, Mode(device=device, memory=memory), feeds, debug=True)["y"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_each_stored_row_is_written_once() -> None:
    proto, _ = _residual(5)
    with VERIFY.set_to("full"):  # launches are followed
        plan = plan_of(proto, Mode(device="adreno_740"))
    text = plan.sources[0].text
    assert "if (first_row + team_row < 5)" in text
    change_source(plan, 0, text=text.replace("if (first_row + team_row < 5)", ""))
    with pytest.raises(InvariantError, match=r"'h'.*several work-items write the element"):
        check_launches(plan)


def test_an_array_of_a_row_has_the_element_type_of_all_who_use_it() -> None:
    """Integer 2224000287: exponentials stood where codes of 8 bits had stood, and were read as integers."""
    c0, c1 = ("scale", np.float32(3 / 127)), ("zero", np.int8(-103))
    c2, c3 = ("scale2", np.float32(1 / 128)), ("zero2", np.int8(-90))
    constants = {name: np.asarray(value) for name, value in (c0, c1, c2, c3)}
    nodes = [
        ("QuantizeLinear", "x scale zero", "q"),
        ("DequantizeLinear", "q scale zero", "d"),
        ("Softmax", "d", "s"),
        ("QuantizeLinear", "s scale2 zero2", "q2"),
        ("DequantizeLinear", "q2 scale2 zero2", "d2"),
        ("MatMul", "d2 w", "y"),
    ]
    feeds = {"x": _random(1, 6, 40), "w": _random(2, 40, 24)}
    agrees(model(nodes, feeds, "y", constants, 19), feeds, GPU)


def test_statistics_of_a_row_keep_their_precision() -> None:
    """A greatest element of 1e9 in double precision is not one of the numbers of single precision."""
    random = np.random.default_rng(5)
    x, w = random.normal(size=(4, 640)) * 1e6 + 1e9, np.abs(_random(6, 640, 96))
    nodes = [
        ("ReduceMax", "x axes", "most"),
        ("Sub", "x most", "apart"),
        ("Cast", "apart", "single", {"to": onnx.TensorProto.FLOAT}),
        ("MatMul", "single w", "y"),
    ]
    feeds, constants = {"x": x, "w": w}, {"axes": np.array([1])}
    got = run(model(nodes, feeds, "y", constants), GPU, feeds)["y"]
    exact = (x - x.max(axis=1, keepdims=True)) @ w.astype(np.float64)
    assert np.abs(got / exact - 1).max() < 2e-6


def test_teams_combine_floats_beside_wide_integers() -> None:
    """Drawn 2232000096: teams exchange the greatest element, a float; each work-item finds its place, a long, alone."""
    x = _random(7, 3, 37)
    agrees(model([("Hardmax", "x", "y")], {"x": x}, "y"), {"x": x}, GPU)
    agrees(model([("Hardmax", "x", "y")], {"x": x}, "y"), {"x": x}, Mode(device="adreno_740"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rows", [8, 20, 64])
def test_sums_that_take_the_place_of_a_residual(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epilogue reads several rows before it writes the first: no row that another work-item writes."""
    monkeypatch.setenv(VERIFY.name, "full")
    _force(monkeypatch, TILES[0], 1)
    x, w, v = _random(0, rows, 16), _random(1, 16, 16), _random(2, 16, 16)
    nodes = [("MatMul", "x w", "h"), ("Relu", "h", "r"), ("MatMul", "r v", "p"), ("Tanh", "p", "t")]
    nodes += [("MatMul", "t w", "q"), ("Add", "q r", "s"), ("MatMul", "s v", "y")]
    proto = model(nodes, {"x": x}, "y", {"w": w, "v": v})
    assert any(launch.in_place for launch in plan_of(proto, GPU).launches)
    agrees(proto, {"x": x}, GPU)
