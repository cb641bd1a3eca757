"""Products on matrix units, in an emulation that exchanges fragments through local memory: any device runs it.

The emulation takes from a `matrix` block where the elements of fragments lie, so that loads, products and stores agree
only if the block is one of a matrix unit. `bench/matrix_units.py` asks the same of the units themselves.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.emit.contraction import group
from smartmem_rules.plan.schedule.contraction.group import GroupTile
from smartmem_rules.plan.schedule.records import GroupSchedule
from tests.emit.units import TILES, any_device_has_units as any_device_has_units, compare, normal, takes
from tests.plan.models import model
from tests.plan.running import Mode, prepare, run

pytestmark = pytest.mark.sampled(20)

LOCAL_TILES = (
    GroupTile(rows=64, columns=64, step=64, slices=1, warp_rows=64, warp_columns=64, buffers=4),
    GroupTile(rows=64, columns=128, step=64, slices=2, warp_rows=64, warp_columns=64, buffers=3),
    GroupTile(rows=128, columns=128, step=64, slices=1, warp_rows=64, warp_columns=128, buffers=2),
)
HALVES = ("nvidia_f16", "intel_f16", "nvidia_wgmma_f16")


@pytest.mark.parametrize("unit", HALVES[:2])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 64), (49, 96, 384), (50, 31, 37), (130, 72, 264)])
@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("splits", [1, 3])
def test_products_of_halves(
    unit: str, m: int, n: int, k: int, tile: GroupTile, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(tile, splits, monkeypatch)
    x, w, b = normal(1, m, k), normal(2, k, n), normal(3, n)
    proto = model([("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")], {"x": x}, "y", {"w": w, "b": b})
    assert compare(proto, {"x": x}).splits == splits


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", ["nvidia_bf16", "nvidia_wgmma_bf16"])
@pytest.mark.parametrize("debug", [False, True])
def test_bfloat16_multiplies_what_it_stores(unit: str, debug: bool) -> None:
    x, v, w = normal(5, 1, 24, 13, 11), normal(6, 16, 24, 1, 1), normal(7, 36, 16, 3, 3)
    nodes = [("Conv", "x v", "h"), ("Conv", "h w", "y", {"pads": [1, 1, 1, 1], "strides": [2, 2]})]
    compare(model(nodes, {"x": x}, "y", {"v": v, "w": w}), {"x": x}, "bfloat16", debug)


@pytest.mark.parametrize("unit", ["nvidia_wgmma_f16"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 64), (49, 96, 384), (50, 31, 37), (130, 72, 264)])
@pytest.mark.parametrize("tile", LOCAL_TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.slices}")
@pytest.mark.parametrize("splits", [1, 3])
def test_products_from_local_memory(
    unit: str, m: int, n: int, k: int, tile: GroupTile, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(tile, splits, monkeypatch)
    x, w, b = normal(1, m, k), normal(2, k, n), normal(3, n)
    proto = model([("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")], {"x": x}, "y", {"w": w, "b": b})
    schedule = compare(proto, {"x": x})
    assert (schedule.name, schedule.splits) == ("contraction_group_local", splits)


@pytest.mark.parametrize("tile", TILES[:2], ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("unit", ["nvidia_tf32"])
def test_products_of_floats(unit: str, tile: GroupTile, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(tile, 1, monkeypatch)
    x, w = normal(1, 50, 132), normal(2, 132, 72)
    compare(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), {"x": x}, "float32")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tile", TILES[:1], ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("unit", ["nvidia_tf32"])
def test_parts_of_floats_that_are_not_finite(unit: str, tile: GroupTile, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(tile, 1, monkeypatch)
    x, w = normal(1, 50, 132), normal(2, 132, 72)
    w[:, ::3] = np.rint(4 * w[:, ::3])  # the second parts of such factors are 0, and some factors are 0
    x[3, 7] = w[5, 4] = w[9, 6] = np.inf
    x[4, 9] = w[7, 8] = -np.inf
    x[5, 11] = np.nan
    x[7, 130] = np.inf  # in the last K step
    x[6] = w[:, 10] = 0
    x[6, 3], w[3, 10] = np.finfo(np.float32).max, 0.75  # rounded to 11 bits, the greatest float is infinite
    with np.errstate(invalid="ignore"):
        wanted = x.astype(np.float64) @ w.astype(np.float64)
        wanted = np.where(np.abs(wanted) > np.finfo(np.float32).max, np.copysign(np.inf, wanted), wanted)
    got = run(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), Mode(device="nvidia"), {"x": x})["y"]
    assert np.isinf(wanted).sum() > 200
    assert np.isnan(wanted).sum() > 80
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-4)


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.step}")
@pytest.mark.parametrize("unit", ["nvidia_tf32"])
def test_long_products_are_sums_of_partial_sums(unit: str, tile: GroupTile, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(tile, 1, monkeypatch)
    x, w = np.ones((20, 5000), np.float32), np.ones((5000, 36), np.float32)
    x[:, 0] = 2.0**24
    got = run(model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w}), Mode(device="nvidia"), {"x": x})["y"]
    # the accumulator that begins with 2^24 loses its own terms of 1
    np.testing.assert_allclose(got, 2.0**24 + 4999, rtol=0, atol=512)


@pytest.mark.parametrize("unit", ["nvidia_wgmma_f16"])
@pytest.mark.parametrize("tile", LOCAL_TILES, ids=lambda t: f"{t.rows}x{t.columns}x{t.slices}")
def test_long_products_from_local_memory(unit: str, tile: GroupTile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "LONGEST_TILE", 128)
    takes(tile, 1, monkeypatch)
    x, w = normal(1, 50, 700), normal(2, 700, 72)
    proto = model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w})
    assert "total0" in prepare(proto, Mode(device="nvidia", dtype="float16"))[0].sources[-1].text
    compare(proto, {"x": x})


@pytest.mark.parametrize("unit", HALVES)
def test_factors_that_are_no_constants(unit: str) -> None:
    x, w, v = normal(1, 50, 24), normal(2, 24, 64), normal(3, 24, 64)
    nodes = [("MatMul", "x w", "a"), ("MatMul", "x v", "b"), ("Transpose", "b", "t"), ("MatMul", "a t", "y")]
    compare(model(nodes, {"x": x}, "y", {"w": w, "v": v}), {"x": x})


@pytest.mark.parametrize("unit", HALVES)
@pytest.mark.parametrize("channels", [16, 20])
@pytest.mark.parametrize("debug", [False, True])
def test_a_convolution_copies_its_windows(unit: str, channels: int, debug: bool) -> None:
    x, v, w = normal(5, 1, 24, 13, 11), normal(6, channels, 24, 1, 1), normal(7, 36, channels, 3, 3)
    nodes = [("Conv", "x v", "h"), ("Conv", "h w", "y", {"pads": [1, 1, 1, 1], "strides": [2, 2]})]
    compare(model(nodes, {"x": x}, "y", {"v": v, "w": w}), {"x": x}, debug=debug)


@pytest.mark.parametrize("unit", ["nvidia_tf32", *HALVES])
@pytest.mark.parametrize(("size", "stride", "channels"), [(7, 2, 3), (5, 2, 3), (8, 2, 1)])
@pytest.mark.parametrize("debug", [False, True])
def test_images_of_few_channels_are_loaded_by_rows(
    unit: str, size: int, stride: int, channels: int, debug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes((LOCAL_TILES if unit == "nvidia_wgmma_f16" else TILES)[0], 1, monkeypatch)
    x, w = normal(5, 2, channels, 21, 69), normal(7, 20, channels, size, size)
    nodes = [("Conv", "x w", "y", {"pads": [size // 2] * 4, "strides": [stride, stride]})]
    proto = model(nodes, {"x": x}, "y", {"w": w})
    dtype = "float32" if unit == "nvidia_tf32" else "float16"
    (source,) = prepare(proto, Mode(device="nvidia", dtype=dtype))[0].sources
    assert ("* 4 + 3" in source.text) == (size != 8)
    compare(proto, {"x": x}, dtype, debug=debug)


@pytest.mark.parametrize("unit", HALVES)
def test_normalised_rows_become_halves_on_chip(unit: str) -> None:
    x, g, b, w = normal(8, 50, 96), normal(9, 96), normal(10, 96), normal(11, 96, 80)
    nodes = [("LayerNormalization", "x g b", "h", {"axis": -1}), ("MatMul", "h w", "y")]
    compare(model(nodes, {"x": x}, "y", {"g": g, "b": b, "w": w}), {"x": x})


@pytest.mark.parametrize("unit", HALVES)
@pytest.mark.parametrize(("tokens", "depth"), [(49, 32), (197, 64)])
def test_an_attention_multiplies_twice(unit: str, tokens: int, depth: int) -> None:
    tile = _attention(tokens, depth).tile
    assert (tile.scores is not None) == (not tile.swizzled)


@pytest.mark.parametrize(
    ("unit", "tile"),
    [*(("nvidia_f16", t) for t in TILES), *(("intel_f16", TILES[i]) for i in (1, 3))],  # which have teams for rows
    ids=lambda one: one if isinstance(one, str) else f"{one.rows}x{one.columns}x{one.step}",
)
@pytest.mark.parametrize(
    ("tokens", "depth"),
    [
        (5, 8), (49, 32), (64, 40), (130, 24),
        *(pytest.param(*long, marks=pytest.mark.exhaustive) for long in ((197, 64), (300, 200))),
    ],
)  # fmt: skip
def test_scores_of_all_columns_at_once(
    unit: str, tokens: int, depth: int, tile: GroupTile, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(tile, 1, monkeypatch)
    found = _attention(tokens, depth).tile
    scores = found.scores
    assert scores is not None
    assert (scores.rows, scores.threads) == (tile.rows, found.threads)
    most = scores.work_group.score_sums * found.threads // scores.rows
    assert scores.columns >= min(tokens, 256) or 2 * scores.columns >= min(tokens, most)
    assert scores.whole == (depth <= 128)


def _attention(tokens: int, depth: int) -> GroupSchedule:
    """The schedule of an attention of three batches, whose outputs have been compared."""
    x = normal(20, 3, tokens, 24)
    weights = {name: normal(21 + i, 24, depth) for i, name in enumerate(("q", "k", "v"))}
    nodes = [
        ("MatMul", "x q", "a"),
        ("MatMul", "x k", "b"),
        ("MatMul", "x v", "c"),
        ("Transpose", "b", "t", {"perm": [0, 2, 1]}),
        ("MatMul", "a t", "s"),
        ("Mul", "s scale", "scaled"),
        ("Softmax", "scaled", "p", {"axis": -1}),
        ("MatMul", "p c", "y"),
    ]
    return compare(model(nodes, {"x": x}, "y", {**weights, "scale": np.float32(0.01)}), {"x": x})


def test_weights_beyond_halves_stay_floats() -> None:
    x, w = normal(1, 50, 64), normal(2, 64, 40)
    w[3, 5] = 1e6
    proto = model([("MatMul", "x w", "y")], {"x": x}, "y", {"w": w})
    plan, executor = prepare(proto, Mode(device="nvidia", dtype="float16"))
    found = executor.run({"x": x})["y"]
    np.testing.assert_allclose(found, ReferenceEvaluator(proto).run(None, {"x": x})[0], rtol=2e-3, atol=1e-2)
    assert all(k.schedule.tile.unit is None for k in plan.launches if isinstance(k.schedule, GroupSchedule))
