"""A device, a layout, a level and a schedule that a user writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.checking import check_files
from tests.plan.models import Node, model, normal

RULES = Path(__file__).parents[2] / "examples" / "own_device" / "own_device.smr"
NODES: list[Node] = [
    ("Conv", "x w", "c", {"pads": [1, 1, 1, 1]}),
    ("Relu", "c", "r"),
    ("Transpose", "r", "t", {"perm": [0, 2, 3, 1]}),
    ("MatMul", "t v", "y"),
]


def made() -> onnx.ModelProto:
    feeds = {"x": normal(1, 6, 20, 300)}
    return model(NODES, feeds, "y", {"w": normal(8, 6, 3, 3), "v": normal(8, 5)})


@pytest.fixture(scope="module")
def plan() -> sm.OptimizedPlan:
    return sm.optimize(made(), rules=[RULES], device="handheld", level="frugal", disable=["contraction_tile"])


def test_the_file_is_right() -> None:
    found, _ = check_files([RULES])
    assert found == []


def test_the_plan_is_right(plan: sm.OptimizedPlan) -> None:
    check = plan.check()
    assert check.passed, check


def test_the_device_and_the_level_are_used(plan: sm.OptimizedPlan) -> None:
    assert (plan.plan.device, plan.plan.level) == ("handheld", "frugal")
    assert all(not kernel.moves_only for kernel in plan.kernels)
    images = [stored for stored in plan.plan.tensors.values() if stored.layout.memory == "image"]
    assert images
    assert all(max(stored.layout.image_size(stored.type.shape)) <= 256 for stored in images)


def test_the_schedule_is_used(plan: sm.OptimizedPlan) -> None:
    contractions = [k for launch in plan.kernels for k in launch.kernels if k.contraction is not None]
    assert contractions
    assert {kernel.schedule.name for kernel in contractions if kernel.schedule is not None} == {"small_tiles"}


def test_the_layout_block_is_the_one_that_the_level_names() -> None:
    base = load_rules([RULES])
    assert base.levels["frugal"].layout == "lanes_only"
    assert base.layouts["lanes_only"].image_axes == 1
    # what the block leaves out has the defaults that the reference shows
    assert base.layouts["lanes_only"].scattered_read == 4.0


def test_without_them_the_names_are_unknown() -> None:
    with pytest.raises(sm.SmartmemError, match="frugal"):
        sm.optimize(made(), level="frugal")
    with pytest.raises(sm.SmartmemError, match="handheld"):
        sm.optimize(made(), device="handheld")


def test_their_outputs_are_those_of_the_shipped_level() -> None:
    mine = sm.optimize(made(), rules=[RULES], device="handheld", level="frugal", disable=["contraction_tile"])
    other = sm.optimize(made(), level="none")
    feeds = mine.random_feeds()
    np.testing.assert_allclose(mine.run(feeds)["y"], other.run(feeds)["y"], rtol=1e-4, atol=1e-5)
