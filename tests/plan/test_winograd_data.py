"""Filtered convolutions of data with NaN, infinities and numbers of very different size: no output depends on elements
that its window does not read, but for as much rounding as the schedule blocks allow."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.printer import schedule_text
from smartmem_rules.plan.schedule.contraction.winograd import Transform
from smartmem_rules.plan.schedule.records import WinogradSchedule, schedule_of
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.simulate.launch import TracedLaunch
from smartmem_rules.simulate.trace import Tracer
from tests.plan.models import Array, Node, model, normal
from tests.plan.test_winograd import SCHEDULES, UNIT, choices, planned, reference, transform

pytestmark = pytest.mark.sampled(8)

PLANTED = (np.nan, np.inf, -np.inf, 1e30, -1e30, 3e38, -3e38, 1e18, 1e9, -1e6, 3000.0, 65.0, -0.0)
UNFILTERED = ("winograd_4", "winograd_2")
PADS = {"pads": [1, 1, 1, 1]}
Places = list[tuple[int, ...]]


def with_planted(x: Array, draw: random.Random, values: tuple[float, ...], most: int) -> tuple[Array, Places]:
    """Data with some elements replaced, and where these stand."""
    found, places = x.copy(), []
    for _ in range(draw.randint(1, most)):
        place = tuple(draw.randrange(extent) for extent in x.shape)
        found[place] = draw.choice(values)
        places.append(place)
    return found, places


def sparse(shape: tuple[int, ...], draw: random.Random) -> Array:
    """Activations behind a rectifier: parts of the data are zero as a whole, others here and there."""
    x = np.maximum(normal(*shape, seed=draw.randrange(1 << 30)), 0)
    for _ in range(draw.randint(0, 2)):
        y, across = (draw.randrange(extent) for extent in shape[2:])
        x[:, :, y : y + 5, across : across + 5] = 0
    return x


# --- each output, by what its tile and its window hold ---


def greatest_of_windows(x: Array, pads: tuple[int, int, int, int], size: int, step: int) -> Array:
    """The greatest magnitude of windows of size x size, over all channels; NaN where one is NaN or infinite."""
    top, left = pads[:2]
    high, wide = (x.shape[axis] + pads[axis - 2] + pads[axis] - 2 for axis in (2, 3))
    rows, columns = -(-high // step), -(-wide // step)
    height, width = (rows - 1) * step + size, (columns - 1) * step + size
    magnitudes = np.zeros((x.shape[0], max(height, high + 2), max(width, wide + 2)))
    sizes = np.abs(x.astype(np.float64)).max(axis=1)
    magnitudes[:, top : top + x.shape[2], left : left + x.shape[3]] = sizes
    windows = np.lib.stride_tricks.sliding_window_view(magnitudes, (size, size), axis=(1, 2))
    return windows[:, : (rows - 1) * step + 1 : step, : (columns - 1) * step + 1 : step].max(axis=(3, 4))


def bounds(x: Array, w: Array, pads: tuple[int, int, int, int], t: Transform, schedule: WinogradSchedule) -> Array:
    """How far each output [images, columns, height, width] may be from the exact one; NaN where that is no number."""
    own = greatest_of_windows(x, pads, t.taps, 1)
    tile = greatest_of_windows(x, pads, t.points, t.outputs)
    tile = tile.repeat(t.outputs, axis=1).repeat(t.outputs, axis=2)[:, : own.shape[1], : own.shape[2]]
    data, channels = schedule.data, x.shape[1]
    near = (tile <= data.largest) & (own >= tile * data.window_part)
    filtered = (tile <= data.ordinary) | near
    greatest = float(np.abs(w).max())
    rounding = UNIT * (channels + 20) * t.growth() * t.taps**2 * channels * greatest * tile
    # what an element of `ordinary`, or one of so many times what the own window holds, has
    allowed = np.maximum(data.ordinary, own / data.window_part)
    assert (~filtered | (tile <= allowed)).all()
    direct = UNIT * (t.taps**2 * channels + 2) * reference(np.abs(x), np.abs(w), pads)
    return np.where(filtered[:, None], rounding[:, None], direct)


SHAPES = [
    # images, channels, height, width, columns, pads
    (1, 8, 12, 12, 16, (1, 1, 1, 1)),
    (1, 16, 9, 11, 20, (1, 1, 1, 1)),  # tiles hang over the image, columns over the last tile
    (1, 16, 10, 7, 8, (0, 0, 0, 0)),  # and over what the windows read
    (2, 8, 8, 6, 24, (1, 0, 1, 2)),  # several images, uneven padding
    (3, 8, 8, 16, 40, (1, 1, 1, 1)),
    (1, 24, 5, 30, 40, (2, 2, 2, 2)),
    (1, 120, 6, 6, 8, (1, 1, 1, 1)),  # direct sums of partial sums
]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_output_keeps_the_bound_of_its_own_window(shape: tuple[Any, ...], name: str) -> None:
    images, channels, height, width, columns, pads = shape
    draw, t = random.Random(f"{shape} {name}"), transform(name)
    w = normal(columns, channels, 3, 3, seed=1)
    x = normal(images, channels, height, width)
    planning = planned([("Conv", "x w", "y", {"pads": list(pads)})], {"x": x}, {"w": w})
    found = [(key, choice) for key, choice in choices(planning) if choice["outputs"] == t.outputs]
    assert found or (images > 1 and (height + pads[0] + pads[2] - 2) % t.outputs)
    for key, choice in draw.sample(found, min(2, len(found))):
        plan = finish(planning, {key: choice})
        (kernel,) = (k for launch in plan.launches for k in launch.kernels if k.template == "winograd")
        schedule, run = schedule_of(kernel, WinogradSchedule), Executor(plan, choose())
        assert schedule.outputs == t.outputs
        for _ in range(6):
            own, _ = with_planted(sparse(x.shape, draw), draw, PLANTED, 4)
            with np.errstate(all="ignore"):
                bound, exact = bounds(own, w, pads, t, schedule), reference(own, w, pads)
                # a sum may overflow on its way
                wide = reference(np.abs(own), np.abs(w), pads) > np.finfo(np.float32).max
            got = run.run({"x": own})["y"]
            numbers = ~wide & np.isfinite(exact)
            assert np.isfinite(got[numbers]).all()
            off = np.abs(np.where(numbers, got, 0) - np.where(numbers, exact, 0)) - np.where(numbers, bound, 0)
            assert not (off > 0).any(), f"{choice}: {off.max()} beyond the bound at {np.argwhere(off > 0)[:3]}"
            assert not np.isfinite(got[~np.isfinite(exact)]).any()


# --- filtered kernels beside and behind others, compared with direct sums ---

MODELS: dict[str, tuple[tuple[int, ...], list[Node]]] = {
    "alone": ((1, 32, 15, 18), [("Conv", "x w", "y", PADS)]),
    "prologue": ((1, 32, 14, 14), [("Abs", "x", "a"), ("Conv", "a w", "y", PADS)]),
    "epilogue": ((1, 32, 13, 14), [("Conv", "x w b", "c", PADS), ("Add", "c x", "d"), ("Relu", "d", "y")]),
    "batch": ((3, 32, 12, 10), [("Neg", "x", "a"), ("Conv", "a w b", "y", PADS)]),
    "beside": ((1, 32, 28, 28), [("Conv", "x w", "c", PADS), ("Conv", "x v", "d", PADS), ("Concat", "c d", "y")]),
    "chain": ((1, 32, 28, 28), [("Conv", "x w", "c", PADS), ("Relu", "c", "e"), ("Conv", "e q", "y")]),
    "two": ((1, 32, 28, 28), [("Conv", "x w", "c", PADS), ("Conv", "x v", "d", PADS), ("Add", "c d", "y")]),
}


def nodes_of(name: str) -> list[Node]:
    return [(*node, {"axis": 1}) if node[0] == "Concat" else node for node in MODELS[name][1]]  # type: ignore[misc]


@cache
def plans(name: str) -> tuple[Plan, Plan]:
    """The plan of a model with filtered convolutions, and the one with direct sums."""
    shape, nodes = MODELS[name][0], nodes_of(name)
    constants = {
        "w": normal(32, 32, 3, 3, seed=1) / 17,
        "v": normal(32, 32, 3, 3, seed=2) / 17,
        "q": normal(32, 32, 1, 1, seed=3) / 6,
        "b": normal(32, seed=4),
    }
    read = {operand for node in nodes for operand in node[1].split()}
    own = {key: value for key, value in constants.items() if key in read}
    proto = model(nodes, {"x": normal(*shape)}, "y", own)
    requests = (Request(proto, (), "pocl", "smartmem", "float32", "buffer", off, {}) for off in ((), UNFILTERED))
    filtered, direct = (finish(make_planning(request)[0]) for request in requests)
    return filtered, direct


def templates(plan: Plan) -> list[str]:
    return [kernel.template for launch in plan.launches for kernel in launch.kernels]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_outputs_depend_on_their_own_windows(name: str, seed: int) -> None:
    filtered, direct = plans(name)
    assert "winograd" in templates(filtered)
    assert "winograd" not in templates(direct)
    draw = random.Random(f"{name} {seed}")
    ours, theirs = (Executor(plan, choose()) for plan in (filtered, direct))
    for _ in range(4):
        clean = sparse(MODELS[name][0], draw)
        x, places = with_planted(clean, draw, PLANTED, 3)
        got, expected = ours.run({"x": x})["y"], theirs.run({"x": x})["y"]
        before = ours.run({"x": clean})["y"]
        apart = np.ones(got.shape, bool)
        for image, _, y, across in places:
            apart[image, :, max(0, y - 1) : y + 2, max(0, across - 1) : across + 2] = False
        scale = float(np.abs(before).max())
        # the clean plan filters such outputs, this one may filter them or not, beside elements of at most 64
        assert np.abs(got - before)[apart].max() <= 64e-5 * scale
        number = np.isfinite(expected)
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        assert np.array_equal(got[~number], expected[~number], equal_nan=True)
        own = np.nan_to_num(greatest_of_windows(x, (1, 1, 1, 1), 3, 1), posinf=0)[:, None]
        error = np.where(number, np.abs(np.where(number, got, 0) - np.where(number, expected, 0)), 0)
        assert (error <= 64e-5 * np.maximum(scale, own)).all()


def test_prologues_and_siblings_are_inside_filtered_kernels() -> None:
    (prologue,) = (k for launch in plans("prologue")[0].launches for k in launch.kernels if k.template == "winograd")
    assert prologue.contraction is not None
    assert "abs" in str(prologue.contraction.a)
    assert [len(k.parts) for launch in plans("beside")[0].launches for k in launch.kernels] == [1]


# --- the constant that holds the weights as they are ---


def filtered_launch() -> tuple[Plan, Launch]:
    plan = plans("alone")[0]
    return plan, next(launch for launch in plan.launches if any(k.template == "winograd" for k in launch.kernels))


def test_the_weights_themselves_are_a_further_constant() -> None:
    plan, launch = filtered_launch()
    schedule = schedule_of(launch.kernels[0], WinogradSchedule)
    ((made,), (direct,)) = schedule.packed, schedule.direct
    assert made is not None
    assert {made.name, direct.name} <= set(launch.reads)
    elements = {name: plan.tensors[name].type.elements for name in (made.name, direct.name)}
    assert elements[made.name] * 9 == elements[direct.name] * schedule.transform.points**2
    assert f"packed {made.name}, for unusual data {direct.name}" in schedule_text(schedule)


def test_what_is_seldom_read_is_no_traffic() -> None:
    plan, launch = filtered_launch()
    schedule = schedule_of(launch.kernels[0], WinogradSchedule)
    moved = [name for name in (*launch.reads, *launch.writes) if name != schedule.direct[0].name]
    assert launch.bytes_moved == sum(4 * plan.tensors[name].type.elements for name in moved)
    assert schedule.seldom_read == (schedule.direct[0].name,)


@pytest.mark.parametrize("seldom", [False, True])
def test_the_simulation_leaves_direct_sums_out(seldom: bool) -> None:
    x, w = normal(1, 16, 9, 11), normal(20, 16, 3, 3, seed=1)
    planning = planned([("Conv", "x w", "y", PADS)], {"x": x}, {"w": w})
    key, choice = next((key, choice) for key, choice in choices(planning))
    plan = finish(planning, {key: choice})
    (source,), (launch,) = plan.sources, plan.launches
    (direct,) = schedule_of(launch.kernels[0], WinogradSchedule).direct
    text = "\n".join(line for line in source.text.splitlines() if "SMR_PREFETCH_LATER(next" not in line)
    traced = TracedLaunch.of(replace(source, text=text), plan.tensors, 1)
    items = traced.items(np.arange(traced.groups), 1)
    accesses = Tracer(traced.text, traced.parameters, items, seldom=seldom).run()
    read = {traced.parameters[a.space.name].name for a in accesses if a.space.kind == "global"}
    assert (direct.name in read) == seldom
