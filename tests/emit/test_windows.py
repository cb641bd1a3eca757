"""Windows of neighbouring rows computed together: results beside onnxruntime, and where they are taken."""

from __future__ import annotations

import random

import numpy as np
import onnxruntime
import pytest

from tests.plan.models import Node, model, normal
from tests.plan.running import Mode, plan_of, prepare

MODE = Mode()


def depthwise(seed: int) -> tuple[list[Node], dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """A depthwise convolution, an activation and a 1x1 convolution of drawn sizes."""
    draw = random.Random(seed)
    channels, height, width = 8 * draw.randint(1, 4), draw.randint(4, 18), draw.choice((4, 6, 7, 8, 10, 12, 14, 15))
    window = draw.choice(((3, 3), (5, 5), (7, 7), (1, 3), (3, 5)))
    strides, dilations = draw.choice(((1, 1), (1, 1), (2, 1), (2, 2))), draw.choice(((1, 1), (1, 1), (2, 1)))
    reach = [(k - 1) * d for k, d in zip(window, dilations, strict=True)]
    pads = [draw.randint(0, r) for r in reach] + [max(0, r - draw.randint(0, r // 2)) for r in reach]
    batch, columns = draw.choice((1, 1, 2)), draw.choice((8, 16, 24, 20))
    attributes = {
        "kernel_shape": list(window), "strides": list(strides), "dilations": list(dilations), "pads": pads,
        "group": channels,
    }  # fmt: skip
    nodes: list[Node] = [
        ("Conv", "x w b", "d", attributes),
        ("Relu", "d", "r"),
        ("Conv", "r v", "y", {"kernel_shape": [1, 1]}),
    ]
    feeds = {"x": normal(batch, channels, height, width, seed=seed)}
    constants = {
        "w": normal(channels, 1, *window, seed=seed + 1), "b": normal(channels, seed=seed + 2),
        "v": normal(columns, channels, 1, 1, seed=seed + 3),
    }  # fmt: skip
    return nodes, feeds, constants, f"seed {seed}: {attributes} of {batch} x {channels} x {height} x {width}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(16))
def test_results_are_those_of_the_convolution(seed: int) -> None:
    nodes, feeds, constants, what = depthwise(seed)
    proto = model(nodes, feeds, "y", constants)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    found = prepare(proto, MODE)[1].run(feeds)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()), err_msg=what)


@pytest.mark.parametrize(
    ("width", "stride", "channels", "together"),
    [(14, 1, 16, True), (9, 1, 16, True), (11, 1, 16, False), (14, 1, 12, False), (28, 2, 16, False)],
    ids=["rows of fourteen", "of nine", "of a prime number", "parts of vectors", "little in common"],
)
def test_where_windows_are_computed_together(width: int, stride: int, channels: int, together: bool) -> None:
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [stride, stride], "group": channels}
    nodes: list[Node] = [
        ("Conv", "x w", "d", attributes),
        ("Conv", "d v", "y", {"kernel_shape": [1, 1]}),
    ]
    constants = {"w": normal(channels, 1, 3, 3), "v": normal(16, channels, 1, 1)}
    plan = plan_of(model(nodes, {"x": normal(1, channels, 14, width)}, "y", constants), MODE)
    assert any("float window[" in source.text for source in plan.sources) == together
