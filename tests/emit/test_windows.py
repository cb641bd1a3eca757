"""Windows of neighbouring rows computed together: results beside onnxruntime, and where they are taken.

A product computes the windows of its rows itself; where their mean is asked for, too, they are a kernel of their own.
"""

from __future__ import annotations

import random

import numpy as np
import onnxruntime
import pytest

from smartmem_rules.plan.schedule.records import ItemSchedule
from tests.plan.models import Node, model, normal
from tests.plan.running import Mode, plan_of, prepare

MODE = Mode()


def _activated(apart: bool) -> list[Node]:
    if not apart:
        return [("Relu", "d", "s")]
    mean: list[Node] = [("GlobalAveragePool", "r", "m"), ("Conv", "m u", "n", {"kernel_shape": [1, 1]})]
    return [("Sigmoid", "d", "g"), ("Mul", "d g", "r"), *mean, ("Mul", "r n", "s")]


def drawn(
    seed: int, apart: bool, grouped: bool
) -> tuple[list[Node], dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """A depthwise or grouped convolution, an activation and a 1x1 convolution of drawn sizes.

    Args:
        apart: the product's rows are scaled by their mean over the image.
    """
    draw = random.Random(seed)
    channels, height, width = 8 * draw.randint(1, 4), draw.randint(4, 18), draw.choice((4, 6, 7, 8, 10, 12, 14, 15))
    window = draw.choice(((3, 3), (5, 5), (7, 7), (1, 3), (3, 5)))
    strides, dilations = draw.choice(((1, 1), (1, 1), (2, 1), (2, 2))), draw.choice(((1, 1), (1, 1), (2, 1)))
    reach = [(k - 1) * d for k, d in zip(window, dilations, strict=True)]
    pads = [draw.randint(0, r) for r in reach] + [max(0, r - draw.randint(0, r // 2)) for r in reach]
    each = draw.choice((2, 4, 8)) if grouped else 1
    batch, columns = draw.choice((1, 1, 2)), draw.choice((8, 16, 24, 20))
    attributes = {
        "kernel_shape": list(window), "strides": list(strides), "dilations": list(dilations), "pads": pads,
        "group": channels // each,
    }  # fmt: skip
    nodes: list[Node] = [
        ("Conv", "x w b", "d", attributes),
        *_activated(apart),
        ("Conv", "s v", "y", {"kernel_shape": [1, 1]}),
    ]
    feeds = {"x": normal(batch, channels, height, width, seed=seed)}
    constants = {
        "w": normal(channels, each, *window, seed=seed + 1), "b": normal(channels, seed=seed + 2),
        "v": normal(columns, channels, 1, 1, seed=seed + 3), "u": normal(channels, channels, 1, 1, seed=seed + 4),
    }  # fmt: skip
    return nodes, feeds, constants, f"seed {seed}: {attributes} of {batch} x {channels} x {height} x {width}"


@pytest.mark.sampled(20)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_results_are_those_of_the_convolution(seed: int, apart: bool, grouped: bool) -> None:
    nodes, feeds, constants, what = drawn(seed, apart, grouped)
    proto = model(nodes, feeds, "y", constants)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    found = prepare(proto, MODE)[1].run(feeds)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()), err_msg=what)


def test_vectors_along_an_axis_of_the_image() -> None:
    """Where the lanes lie along the image's height, no test of its border holds for a whole vector."""
    test_results_are_those_of_the_convolution(8, True, True)


SHAPES = pytest.mark.parametrize(
    ("width", "stride", "channels", "together"),
    [(14, 1, 16, True), (9, 1, 16, True), (11, 1, 16, False), (14, 1, 12, False), (28, 2, 16, False)],
    ids=["rows of fourteen", "of nine", "of a prime number", "parts of vectors", "little in common"],
)


@SHAPES
@pytest.mark.parametrize("apart", [False, True])
def test_where_windows_are_computed_together(
    width: int, stride: int, channels: int, together: bool, apart: bool
) -> None:
    side, step = (7, stride**2) if apart else (3, stride)  # windows of 3 x 3 would be computed twice
    attributes = {"kernel_shape": [side] * 2, "pads": [side // 2] * 4, "strides": [step] * 2, "group": channels}
    nodes: list[Node] = [
        ("Conv", "x w", "d", attributes),
        *_activated(apart),
        ("Conv", "s v", "y", {"kernel_shape": [1, 1]}),
    ]
    constants = {
        "w": normal(channels, 1, side, side),
        "v": normal(16, channels, 1, 1),
        "u": normal(channels, channels, 1, 1),
    }
    plan = plan_of(model(nodes, {"x": normal(1, channels, 14, width)}, "y", constants), MODE)
    schedules = [kernel.schedule for launch in plan.launches for kernel in launch.kernels]
    in_product = any("float window[" in source.text for source in plan.sources)
    in_kernel = any(isinstance(one, ItemSchedule) and one.window_rows > 1 for one in schedules)
    assert (in_product, in_kernel) == (together and not apart, together and apart)


@pytest.mark.parametrize(("each", "windows"), [(4, True), (8, True), (16, False)])
def test_groups_of_few_channels_are_windows(each: int, windows: bool) -> None:
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 64 // each}
    nodes: list[Node] = [("Conv", "x w", "y", attributes)]
    proto = model(nodes, {"x": normal(1, 64, 14, 14)}, "y", {"w": normal(64, each, 3, 3)})
    kernels = [kernel for launch in plan_of(proto, MODE).launches for kernel in launch.kernels]
    assert any(kernel.contraction is not None for kernel in kernels) != windows
