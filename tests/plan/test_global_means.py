"""Means over whole images on GPUs: work-groups share them; no work-group of a product computes them by itself."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules import optimize
from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.schedule.records import TeamSchedule
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.plan.models import model, normal


def excitation(channels: int, side: int) -> onnx.ModelProto:
    """A squeeze-and-excitation block behind a 1x1 convolution."""
    weights = {
        "w": normal(channels, 8, 1, 1, seed=1), "down": normal(4, channels, 1, 1, seed=2),
        "up": normal(channels, 4, 1, 1, seed=3), "last": normal(8, channels, 1, 1, seed=4),
    }  # fmt: skip
    nodes = [
        ("Conv", "x w", "wide"), ("GlobalAveragePool", "wide", "mean"), ("Conv", "mean down", "few"),
        ("Relu", "few", "positive"), ("Conv", "positive up", "many"), ("Sigmoid", "many", "scale"),
        ("Mul", "wide scale", "scaled"), ("Conv", "scaled last", "y"),
    ]  # fmt: skip
    return model(nodes, {"x": normal(1, 8, side, side)}, "y", weights)


def planned(proto: onnx.ModelProto) -> Plan:
    planning, _ = make_planning(Request(proto, (), "nvidia", "smartmem", "float32", "buffer", (), {}))
    return finish(planning)


def kernels(plan: Plan) -> list[Kernel]:
    return [kernel for launch in plan.launches for kernel in launch.kernels]


@pytest.mark.parametrize(("side", "apart"), [(7, False), (40, True)])
def test_long_means_are_kernels_of_their_own(side: int, apart: bool) -> None:
    forms = [kernel.form for kernel in kernels(planned(excitation(16, side)))]
    assert ("reduction" in forms) == apart, forms


def test_work_groups_share_the_means_of_neighbouring_channels() -> None:
    proto = excitation(24, 20)
    plan = planned(proto)
    (mean,) = [kernel for kernel in kernels(plan) if kernel.form == "reduction"]
    assert isinstance(mean.schedule, TeamSchedule)
    assert mean.schedule.whole_rows
    (number,) = [n for n, launch in enumerate(plan.launches) if mean in launch.kernels]
    source = plan.sources[number]
    assert source.local_size is not None
    assert source.global_size[0] // source.local_size[0] == 24
    feeds = {"x": normal(1, 8, 20, 20, seed=9)}
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    found = Executor(plan, choose()).run(feeds)["y"]
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_a_lone_pooling_has_a_work_group_for_each_channel() -> None:
    proto = model([("GlobalAveragePool", "x", "y")], {"x": normal(1, 40, 30, 34)}, "y")
    plan = planned(proto)
    source = plan.sources[-1]
    assert source.local_size is not None
    assert source.global_size[0] // source.local_size[0] == 40
    feeds = {"x": normal(1, 40, 30, 34, seed=3)}
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    assert np.abs(Executor(plan, choose()).run(feeds)["y"] - expected).max() <= 1e-6


def test_the_processor_keeps_its_plan() -> None:
    assert len(optimize(excitation(16, 12), device="pocl").kernels) == 1
