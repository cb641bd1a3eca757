"""Rows of several axes: the groups of channels of an image, whose statistics a normalization takes."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

from tests.plan.models import Array, Node, i64, model, normal
from tests.plan.running import Mode, by_onnxruntime, plan_of, run

CHANNELS, SIDE = 16, 12


def normalized_groups() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A product by channels, a normalization of two groups as exporters write it, and another product."""
    nodes: list[Node] = [
        ("Conv", "x w", "wide"),
        ("Reshape", "wide groups", "rows"),
        ("InstanceNormalization", "rows ones zeros", "normal"),
        ("Reshape", "normal whole", "image"),
        ("Mul", "image scale", "scaled"),
        ("Add", "scaled bias", "group_norm"),
        ("Sigmoid", "group_norm", "gate"),
        ("Mul", "group_norm gate", "active"),
        ("Conv", "active v", "y"),
    ]
    constants = {
        "w": normal(CHANNELS, 8, 1, 1, seed=1),
        "v": normal(32, CHANNELS, 3, 3, seed=2),
        "scale": normal(CHANNELS, 1, 1, seed=3),
        "bias": normal(CHANNELS, 1, 1, seed=4),
        "ones": np.ones(2, np.float32),
        "zeros": np.zeros(2, np.float32),
        "groups": i64(1, 2, -1),
        "whole": i64(1, CHANNELS, SIDE, SIDE),
    }
    feeds = {"x": normal(1, 8, SIDE, SIDE)}
    return model(nodes, feeds, "y", constants), feeds


def test_groups_are_written_along_the_axis_along_which_they_are_read() -> None:
    proto, _ = normalized_groups()
    plan = plan_of(proto, Mode(device="pocl"))
    for launch in plan.launches:
        for kernel in launch.kernels:
            if kernel.form == "reduction":
                touched = {*kernel.reads, *kernel.writes} - {t for t, s in plan.tensors.items() if s.role == "constant"}
                assert len({plan.tensors[t].layout.order[-1] for t in touched}) == 1, kernel


def test_groups_are_stored_in_vectors() -> None:
    proto, _ = normalized_groups()
    texts = [source.text for source in plan_of(proto, Mode(device="pocl")).sources]
    functions = [function for text in texts for function in re.split(r"\n(?=static |__kernel )", text)]
    rows = [function for function in functions if "/ 1152.0f" in function]
    assert rows
    for function in rows:
        assert "*(__global float8*)" in function, function


@pytest.mark.sampled(2)
@pytest.mark.parametrize("device", ["pocl", "nvidia", "adreno_740"])
@pytest.mark.parametrize("memory", ["buffer", "image"])
def test_groups_are_right(device: str, memory: str) -> None:
    proto, feeds = normalized_groups()
    wanted = by_onnxruntime(proto, feeds)["y"]
    found = run(proto, Mode(device=device, memory=memory), feeds)["y"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
