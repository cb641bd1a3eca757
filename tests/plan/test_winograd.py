"""Convolutions by Winograd's filtering: the matrices, which convolutions qualify, results and their rounding."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from smartmem_rules.emit.plan import finish
from smartmem_rules.language.blocks.schedule import Winograd
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.kernel.key import kernel_key
from smartmem_rules.plan.kernel.launch import Chain, Single
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.schedule.contraction.winograd import Transform, transform_of, transformed_weights
from smartmem_rules.plan.schedule.records import WinogradSchedule, schedule_of
from smartmem_rules.runtime import target
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.plan.models import Array, Node, model, normal
from tests.plan.programs import rules

pytestmark = pytest.mark.sampled(8)

UNIT = 2.0**-24
SCHEDULES = {s.name: s for s in rules().schedules.values() if isinstance(s, Winograd)}


def transform(name: str) -> Transform:
    return transform_of(SCHEDULES[name])


def planned(
    nodes: list[Node], feeds: dict[str, Array], constants: dict[str, Array], dtype: str = "float32"
) -> Planning:
    proto = model(nodes, feeds, "y", constants)
    return make_planning(Request(proto, (), "pocl", "smartmem", dtype, "buffer", (), {}))[0]


def choices(planning: Planning) -> list[tuple[str, dict[str, int]]]:
    """Every way in which the convolutions of a plan could be filtered: kernel key and sizes."""
    scheduler = planning.scheduler(dict(planning.tensors), None)
    found = []
    kernels = [kernel for launch in planning.launches for kernel in launch.kernels]
    for kernel in (one for one in kernels if one.contraction is not None):
        space = scheduler.space(Single(kernel=kernel), 2)
        found += [(kernel_key(kernel, planning.tensors), c) for c in space if c.get("outputs", 1) > 1]
    return found


def reference(x: Array, w: Array, pads: tuple[int, int, int, int]) -> Array:
    """The convolution in double precision."""
    top, left, bottom, right = pads
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    height, width = padded.shape[2] - 2, padded.shape[3] - 2
    places = [(i, j) for i in range(3) for j in range(3)]
    windows = np.stack([padded[:, :, i : i + height, j : j + width] for i, j in places], axis=2)
    return np.einsum("ncphw,ocp->nohw", windows, w.astype(np.float64).reshape(*w.shape[:2], 9))


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_matrices_filter_exactly(name: str) -> None:
    t = transform(name)
    draw = random.Random(name)
    schedule = SCHEDULES[name]
    matrices = {"input": schedule.input, "output": schedule.output}
    rows = {k: [[Fraction(int(v)) for v in row] for row in matrix] for k, matrix in matrices.items()}
    weights = [[Fraction(int(v), int(schedule.weights_over)) for v in row] for row in schedule.weights]
    d = [Fraction(draw.randint(-99, 99)) for _ in range(t.points)]
    g = [Fraction(draw.randint(-99, 99)) for _ in range(t.taps)]

    def times(matrix: list[list[Fraction]], vector: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]

    product = [a * b for a, b in zip(times(weights, g), times(rows["input"], d), strict=True)]
    direct = [sum((d[i + j] * g[j] for j in range(t.taps)), Fraction(0)) for i in range(t.outputs)]
    assert times(rows["output"], product) == direct
    assert t.points == t.outputs + t.taps - 1


SHAPES = [
    # images, channels, height, width, columns, pads
    (1, 8, 12, 12, 16, (1, 1, 1, 1)),
    (1, 16, 9, 11, 20, (1, 1, 1, 1)),  # tiles hang over the image, columns over the last tile
    (1, 16, 10, 7, 8, (0, 0, 0, 0)),  # and over what the windows read
    (2, 8, 8, 6, 24, (1, 0, 1, 2)),  # several images, uneven padding
    (1, 24, 5, 30, 40, (2, 2, 2, 2)),
    (1, 8, 3, 3, 8, (1, 1, 1, 1)),
]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_stay_within_the_bound_of_rounding(shape: tuple[Any, ...], name: str) -> None:
    images, channels, height, width, columns, pads = shape
    x, w = normal(images, channels, height, width), normal(columns, channels, 3, 3, seed=1)
    planning = planned([("Conv", "x w", "y", {"pads": list(pads)})], {"x": x}, {"w": w})
    t = transform(name)
    expected = reference(x, w, pads)
    outputs = expected.shape[2]
    found = [(key, choice) for key, choice in choices(planning) if choice["outputs"] == t.outputs]
    assert found or (images > 1 and outputs % t.outputs)
    # sums over the channels, and some operations of each transform
    direct = 9 * channels * float(np.abs(x).max()) * float(np.abs(w).max())
    bound = UNIT * (channels + 20) * t.growth() * direct
    for key, choice in random.Random(str(shape)).sample(found, min(2, len(found))):
        plan = finish(planning, {key: choice})
        (kernel,) = (k for launch in plan.launches for k in launch.kernels if k.template == "winograd")
        assert schedule_of(kernel, WinogradSchedule).outputs == t.outputs
        got = Executor(plan, choose()).run({"x": x})["y"]
        error = float(np.abs(got - expected).max())
        assert error <= bound, f"{choice}: {error} of at most {bound}"
        assert error <= 2e-5 * float(np.abs(expected).max()), f"{choice}"


@pytest.mark.parametrize(
    ("attributes", "kernel", "channels", "dtype"),
    [
        ({"strides": [2, 2]}, 3, 8, "float32"),
        ({"dilations": [2, 2]}, 3, 8, "float32"),
        ({"strides": [1, 2]}, 3, 8, "float32"),
        ({}, 5, 8, "float32"),
        ({}, 3, 12, "float32"),  # no whole vectors of channels
        ({"group": 8}, 3, 8, "float32"),
        ({}, 3, 8, "float16"),  # halves would lose too much of the weights
    ],
)
def test_other_convolutions_are_left_alone(attributes: dict[str, Any], kernel: int, channels: int, dtype: str) -> None:
    x, group = normal(1, channels, 16, 16), attributes.get("group", 1)
    w = normal(16, channels // group, kernel, kernel, seed=1)
    assert not choices(planned([("Conv", "x w", "y", attributes)], {"x": x}, {"w": w}, dtype))


BLOCK: list[Node] = [
    ("Conv", "x u", "a", {"pads": [1, 1, 1, 1]}),
    ("Relu", "a", "b"),
    ("Conv", "b v", "c"),
    ("Add", "c x", "d"),
    ("Relu", "d", "y"),
]


def kernels(planning: Planning) -> list[Kernel]:
    return [kernel for launch in finish(planning).launches for kernel in launch.kernels]


@pytest.mark.parametrize("size", [14, 26])
def test_a_filtered_convolution_begins_a_chain(size: int) -> None:
    """Blocks of the launch are whole rows of tiles, and no launch is added."""
    x = normal(1, 64, size, size)
    constants = {"u": normal(64, 64, 3, 3, seed=1) / 24, "v": normal(64, 64, 1, 1, seed=2) / 8}
    planning = planned(BLOCK, {"x": x}, constants)
    plan = finish(planning)
    *copies, chain = plan.launches
    assert isinstance(chain, Chain)
    assert chain.rows is not None
    assert all(one.moves_only for one in copies)  # of the image, where reading it in another order does not pay
    first = schedule_of(chain.kernels[0], WinogradSchedule)
    assert first.template == "winograd"
    assert chain.rows.block_rows % (first.outputs * size) == 0
    a = np.maximum(reference(x, constants["u"], (1, 1, 1, 1)), 0)
    expected = np.maximum(np.einsum("nchw,oc->nohw", a, constants["v"][:, :, 0, 0].astype(np.float64)) + x, 0)
    got = Executor(plan, choose()).run({"x": x})["y"]
    assert float(np.abs(got - expected).max()) <= 1e-5 * float(np.abs(expected).max())


def test_weights_larger_than_the_gain_are_not_transformed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few outputs do not pay for reading 36 numbers where there were 9, unless products take long."""
    monkeypatch.setattr(target, "_register_width", lambda profile, device: 8)
    x, w = normal(1, 512, 5, 5), normal(512, 512, 3, 3, seed=1)
    planning = planned([("Conv", "x w", "y", {"pads": [1, 1, 1, 1]})], {"x": x}, {"w": w})
    assert [leaf.template for leaf in kernels(planning)] == ["panel"]
    assert choices(planning)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", [(1, 20, 16), (2, 16, 600), (1, 5, 24)], ids=str)
def test_weights_are_transformed_in_double_precision(name: str, shape: tuple[int, int, int]) -> None:
    t, columns = transform(name), 16
    batch, n, channels = shape
    values = normal(*shape, 3, 3)
    got = transformed_weights(values, t, columns)
    g = np.asarray(t.weights, np.float64)
    expected = np.einsum("pk,bnckl,ql->bpqcn", g, values.astype(np.float64), g)
    padded = np.zeros((batch, t.points**2, channels, -(-n // columns) * columns))
    padded[..., :n] = expected.reshape(batch, t.points**2, channels, n)
    tiles = padded.reshape(*padded.shape[:3], -1, columns).transpose(0, 3, 1, 2, 4)
    assert np.allclose(got, tiles, rtol=2**-23, atol=1e-12)
    assert not got[:, -1, ..., n % columns or columns :].any()


@pytest.mark.parametrize("extreme", [np.inf, -np.inf, np.nan, 2e37])
@pytest.mark.parametrize("chained", [False, True])
def test_extreme_weights_are_not_filtered(extreme: float, chained: bool) -> None:
    """Sums of such weights are infinite or NaN where the weights are not."""
    x, w, v = normal(1, 32, 28, 28), normal(32, 32, 3, 3, seed=1), normal(32, 32, 1, 1, seed=2)
    w[3, 4, 1, :] = extreme
    nodes: list[Node] = [("Conv", "x w", "c", {"pads": [1, 1, 1, 1]}), ("Conv", "c v", "y")] if chained else []
    nodes = nodes or [("Conv", "x w", "y", {"pads": [1, 1, 1, 1]})]
    plan = finish(planned(nodes, {"x": x}, {"w": w} | ({"v": v} if chained else {})))
    kernels = [k for launch in plan.launches for k in launch.kernels]
    assert "winograd" not in {k.template for k in kernels}
    got = Executor(plan, choose()).run({"x": x})["y"]
    with np.errstate(all="ignore"):
        expected = reference(x, w, (1, 1, 1, 1)).astype(np.float32)
    if not chained:
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
        assert np.isfinite(np.delete(got, 3, axis=1)).all()
    ordinary = normal(32, 32, 3, 3, seed=1)
    other = finish(planned(nodes, {"x": x}, {"w": ordinary} | ({"v": v} if chained else {})))
    assert "winograd" in {k.template for launch in other.launches for k in launch.kernels}
