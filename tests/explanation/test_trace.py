"""The trace of a run: what it says of launches, of the host and of planning, and where it is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from smartmem_rules import OptimizedPlan, SpecializedModel, load, optimize
from smartmem_rules.explanation.trace import TraceFileError
from smartmem_rules.graph.model import GraphError
from smartmem_rules.runtime.contexts.timed_run import LaunchTimes, RunTimes
from smartmem_rules.stages import STAGES
from tests.plan.models import model, normal
from tests.plan.open_models import attention

X = normal(24, 16)
NODES = [("MatMul", "x u", "a"), ("Softmax", "a", "b", {"axis": 0}), ("MatMul", "b v", "c"), ("Sub", "c a", "y")]
CONSTANTS = {"u": normal(16, 24), "v": normal(24, 24, seed=1)}
HOST, DEVICE = 1, 2
ROUNDING = 0.002
"""Microseconds: times are written in nanoseconds."""


@pytest.fixture(scope="module")
def plan() -> OptimizedPlan:
    """A plan of several launches."""
    return optimize(model(NODES, {"x": X}, "y", CONSTANTS), level="none", device="pocl")


def traced(plan: OptimizedPlan, feeds: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The trace of a run whose outputs are those of a run without one."""
    expected = plan.run(feeds)
    outputs = plan.run(feeds, trace=path)
    assert outputs.keys() == expected.keys()
    for name, array in outputs.items():
        np.testing.assert_array_equal(array, expected[name])
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def complete(data: Mapping[str, Any], process: int, category: str) -> list[dict[str, Any]]:
    found = [one for one in data["traceEvents"] if one["ph"] == "X" and one["cat"] == category]
    assert all(one["pid"] == process for one in found)
    return found


def follow_each_other(events: list[dict[str, Any]]) -> bool:
    return all(a["ts"] + a["dur"] <= b["ts"] + ROUNDING for a, b in pairwise(events))


def test_an_event_for_each_launch(plan: OptimizedPlan, tmp_path: Path) -> None:
    data = traced(plan, {"x": X}, tmp_path / "run.json")
    events = complete(data, DEVICE, "launch")
    assert len(events) == len(plan.kernels) > 2
    assert follow_each_other(events)
    for number, (event, launch, source) in enumerate(zip(events, plan.kernels, plan.plan.sources, strict=True)):
        given = event["args"]
        assert (event["name"], given["launch"]) == (launch.name, number)
        assert given["kernels"] == [kernel.name for kernel in launch.kernels]
        assert given["nodes"] == list(launch.origin)
        assert given["nodes"]
        assert (given["bytes"], given["operations"]) == (launch.bytes_moved, launch.operations)
        assert given["global_size"] == list(source.global_size)
        assert given["modelled_us"] > 0
        assert given["queued_us"] <= given["submit_us"] <= given["start_us"] <= given["end_us"]
        assert event["ts"] == given["start_us"]
        assert event["ts"] + event["dur"] == pytest.approx(given["end_us"], abs=ROUNDING)
    known = {node for event in events for node in event["args"]["nodes"]}
    assert known == set(plan.plan.statistics.model.nodes)


def test_the_hosts_steps_enclose_the_launches(plan: OptimizedPlan, tmp_path: Path) -> None:
    data = traced(plan, {"x": X}, tmp_path / "run.json")
    steps = complete(data, HOST, "host")
    assert [one["name"] for one in steps] == ["warm-up", "input x", "enqueue", "wait", "outputs"]
    assert steps[1]["args"] == {"tensors": ["x"], "bytes": X.nbytes}
    assert steps[-1]["args"] == {"tensors": ["y"], "bytes": 24 * 24 * 4}
    assert follow_each_other(steps)
    enqueue, wait = steps[2], steps[3]
    uncertainty = data["otherData"]["clock_uncertainty_us"] + 50  # two clocks of one machine differ a little in rate
    for event in complete(data, DEVICE, "launch"):
        assert event["args"]["queued_us"] >= enqueue["ts"] - uncertainty
        assert event["args"]["end_us"] <= wait["ts"] + wait["dur"] + uncertainty


def test_planning_has_a_track_where_it_happened_here(plan: OptimizedPlan, tmp_path: Path) -> None:
    data = traced(plan, {"x": X}, tmp_path / "made.json")
    stages = complete(data, HOST, "planning")
    assert Counter(one["name"] for one in stages).keys() == set(STAGES) - {"saturate", "extract", "calibrate", "probes"}
    assert min(one["ts"] for one in data["traceEvents"]) == 0
    seconds = plan.report_data()["seconds"]
    assert sum(one["dur"] for one in stages) == pytest.approx(
        1e6 * (sum(seconds.values()) - seconds["total"]), rel=1e-6
    )
    plan.save(tmp_path / "a.plan")
    loaded = traced(load(tmp_path / "a.plan"), {"x": X}, tmp_path / "loaded.json")
    assert not complete(loaded, HOST, "planning")
    launches = complete(loaded, DEVICE, "launch")
    assert [one["args"]["nodes"] for one in launches] == [list(launch.origin) for launch in plan.kernels]
    assert all(one["args"]["modelled_us"] is None for one in launches)


def test_tracks_and_the_device_have_names(plan: OptimizedPlan, tmp_path: Path) -> None:
    data = traced(plan, {"x": X}, tmp_path / "run.json")
    names = {
        (one["name"], one["pid"], one["tid"]): one["args"].get("name")
        for one in data["traceEvents"]
        if one["ph"] == "M" and one["name"] in ("process_name", "thread_name")
    }
    assert plan.device is not None
    assert names["process_name", DEVICE, 0] == plan.device.name
    used = {(one["pid"], one["tid"]) for one in data["traceEvents"] if one["ph"] == "X"}
    assert used == {(process, thread) for kind, process, thread in names if kind == "thread_name"}
    said = data["otherData"]
    assert (said["device"], said["driver"]) == (plan.device.name, plan.device.driver)
    assert (said["level"], said["dtype"]) == ("none", "float32")


def test_launches_of_a_range_have_the_sizes_of_the_run(tmp_path: Path) -> None:
    plan = optimize(attention(), dims={"batch": 2, "sequence": (1, 64)}, level="none", device="pocl")
    sizes = {}
    for extent in (3, 60):
        feeds = plan.random_feeds(0, {"sequence": extent})
        launches = complete(traced(plan, feeds, tmp_path / f"{extent}.json"), DEVICE, "launch")
        assert all(isinstance(one["args"]["operations"], int) for one in launches)
        sizes[extent] = [one["args"]["global_size"] for one in launches]
    assert sizes[3] != sizes[60]


def test_a_model_that_is_planned_when_it_runs(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> f (float[3, 1] x, int64[2] shape) => (float[N, M] y) '
    made = optimize(onnx.parser.parse_model(text + "{ e = Exp (x)  y = Expand (e, shape) }"))
    assert isinstance(made, SpecializedModel)
    feeds = {"x": normal(3, 1), "shape": np.array([3, 5])}
    made.run(feeds, trace=tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text())
    assert len(complete(data, DEVICE, "launch")) == len(made.kernels)


@pytest.mark.parametrize("place", ["missing/run.json", "."])
def test_a_place_that_cannot_be_written(plan: OptimizedPlan, tmp_path: Path, place: str) -> None:
    with pytest.raises(TraceFileError, match="the trace cannot be written"):
        plan.run({"x": X}, trace=tmp_path / place)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_what_was_there(plan: OptimizedPlan, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("before")
    with pytest.raises(GraphError):
        plan.run({"x": normal(2, 2)}, trace=path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def launch(called: int, returned: int, queued: int) -> LaunchTimes:
    times = {"submitted": queued, "started": queued, "ended": queued}
    return LaunchTimes(
        name="k", global_size=(1,), local_size=None, called=called, returned=returned, queued=queued, **times
    )


def test_clocks_are_brought_together_by_the_calls() -> None:
    """The device's clock is 1000 ahead; the second call says so within 2, the first within 10."""
    times = RunTimes(steps=(), launches=(launch(0, 20, 1010), launch(100, 104, 1101)))
    found = times.offset()
    assert (found.nanoseconds, found.uncertainty) == (999, 2)
    assert abs(found.nanoseconds - 1000) <= found.uncertainty
    assert RunTimes(steps=(), launches=()).offset().nanoseconds == 0
