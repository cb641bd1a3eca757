"""Schedules of kernels without a contraction: their sizes are rules, all that tuning may choose computes the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.kernel.key import launch_key
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.schedule.elementwise import CLASSES, class_of, element_schedules, sizes_of_elements
from smartmem_rules.plan.schedule.records import TeamSchedule
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.plan.models import i64, model, normal

WINDOW = [("Conv", "x w", "y", {"group": 6, "pads": [1, 1, 1, 1]})]
CASES = {
    "pointwise": (model([("Mul", "x x", "s"), ("Tanh", "s", "y")], {"x": normal(1, 6, 8, 12)}, "y"), (1, 6, 8, 12)),
    "window": (model(WINDOW, {"x": normal(1, 6, 8, 12)}, "y", {"w": normal(6, 1, 3, 3, seed=1)}), (1, 6, 8, 12)),
    "reduction": (model([("Softmax", "x", "y", {"axis": -1})], {"x": normal(2, 5, 37)}, "y"), (2, 5, 37)),
    "variance": (
        model(
            [("ReduceMean", "x axes", "m"), ("Sub", "x m", "d"), ("Mul", "d d", "q"), ("ReduceMean", "q axes", "y")],
            {"x": normal(2, 7, 130)}, "y", {"axes": i64(2)},
        ),
        (2, 7, 130),
    ),
}  # fmt: skip


def planned(proto: onnx.ModelProto, device: str, memory: str):  # type: ignore[no-untyped-def]
    return make_planning(Request(proto, (), device, "layout", "float32", memory, (), {}))[0]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("device", "memory"), [("nvidia", "buffer"), ("nvidia", "image"), ("adreno_740", "image")])
def test_every_choice_computes_the_same(case: str, device: str, memory: str) -> None:
    proto, shape = CASES[case]
    planning = planned(proto, device, memory)
    (launch,) = planning.launches
    space = planning.scheduler(dict(planning.tensors), None).space(launch, 1)
    assert len(space) > 3
    feeds = {"x": normal(*shape, seed=7)}
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    texts = set()
    for choice in space:
        plan = finish(planning, {launch_key(launch, planning.tensors): choice})
        texts.add((plan.sources[0].text, plan.sources[0].local_size))
        found = Executor(plan, choose()).run(feeds)["y"]
        assert np.abs(found - expected).max() <= 2e-6 * max(1, np.abs(expected).max()), choice
    assert len(texts) > 2


def test_kernels_belong_to_classes() -> None:
    planned_ = {name: planned(proto, "nvidia", "buffer") for name, (proto, _) in CASES.items()}
    found = {name: class_of(one.launches[0].kernel) for name, one in planned_.items()}
    assert found == {"pointwise": "pointwise", "window": "window", "reduction": "reduction", "variance": "reduction"}


@pytest.mark.parametrize("kind", ["cpu", "gpu", "texture_gpu"])
def test_every_kind_of_device_has_a_schedule_for_each_class(kind: str) -> None:
    assert set(element_schedules(load_rules().schedules, kind, "buffer")) == set(CLASSES)


def test_a_device_without_a_schedule_is_told() -> None:
    with pytest.raises(PlanError, match="no schedule for pointwise, window, reduction, scan kernels of a gpu device"):
        element_schedules({}, "gpu", "buffer")


def test_rows_that_exceed_local_memory_belong_to_one_work_item() -> None:
    planning = planned(CASES["reduction"][0], "nvidia", "buffer")
    schedule = planning.elementwise["reduction"]
    (kernel,) = planning.launches[0].kernels
    device = load_rules().devices["nvidia"]
    sizes = sizes_of_elements(schedule, kernel, planning.tensors, device, 4, {})
    assert isinstance(sizes, TeamSchedule)
    assert sizes.team > 1
    if any(stage.axes for stage in kernel.stages):
        small = replace(device, memory=replace(device.memory, local_memory=64))
        tiny = sizes_of_elements(schedule, kernel, planning.tensors, small, 4, {})
        assert isinstance(tiny, TeamSchedule)
        assert (tiny.team, tiny.teams) == (1, 256)
