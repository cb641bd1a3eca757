"""Launches that are recorded once and replayed, on a stub of OpenCL that offers it in both ways."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules import optimize
from smartmem_rules.runtime.plan_file import save_plan
from tests.plan.open_models import perceptron
from tests.runtime.c.library import run, sanitized
from tests.runtime.plans import make_plan

KHR, QCOM = "cl_khr_command_buffer", "cl_qcom_recordable_queues"
LAUNCH = "clEnqueueNDRangeKernel"
RECORD = {
    KHR: ["clCreateCommandBufferKHR", *["clCommandNDRangeKernelKHR"] * 2, "clFinalizeCommandBufferKHR"],
    QCOM: ["clCreateCommandQueue", "clNewRecordingQCOM", LAUNCH, LAUNCH, "clEndRecordingQCOM"],
}
REPLAY = {KHR: ["clEnqueueCommandBufferKHR"], QCOM: ["clEnqueueRecordingQCOM"]}
FORGET = {KHR: ["clReleaseCommandBufferKHR"], QCOM: ["clReleaseRecordingQCOM"]}
PLAIN = [LAUNCH, LAUNCH]
BOTH = pytest.mark.parametrize("way", [KHR, QCOM])


def runs(folder: Path, *extents: str, record: int = 0, **device: str) -> list[list[str]]:
    """The calls of each run of one session, less those that copy and wait; `drive` checks the results."""
    drive, stub = sanitized()
    log = folder / "log"
    run(
        drive,
        "repeated",
        stub,
        folder / "a.plan",
        str(record),
        *extents,
        env={**os.environ, "STUB_LOG": str(log), **device},
    )
    copies = {"clEnqueueWriteBuffer", "clEnqueueReadBuffer", "clFinish", "clFlush", "clWaitForEvents", "clReleaseEvent"}
    parts = log.read_text().split("run\n")[1:-1]
    return [[call for call in part.split() if call not in copies | {"clSetKernelArg"}] for part in parts]


@BOTH
def test_the_second_run_records_and_those_after_it_replay(tmp_path: Path, way: str) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    found = runs(tmp_path, *"0000", STUB_EXTENSIONS=f"cl_khr_fp64 {way}")
    assert found == [PLAIN, RECORD[way] + REPLAY[way], REPLAY[way], REPLAY[way]]


@BOTH
def test_asynchronous_runs_are_enqueued_one_by_one(tmp_path: Path, way: str) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    found = runs(tmp_path, "0", "0", "0a", "0", STUB_EXTENSIONS=way)
    assert found == [PLAIN, RECORD[way] + REPLAY[way], PLAIN, REPLAY[way]]


@BOTH
def test_other_extents_are_recorded_anew(tmp_path: Path, way: str) -> None:
    made = perceptron()
    names = [one.dim_param for one in made.graph.input[0].type.tensor_type.shape.dim if one.dim_param]
    optimize(made, dims={name: (1, 9) for name in names}).save(tmp_path / "a.plan")
    found = runs(tmp_path, *"44477744", STUB_EXTENSIONS=way)
    assert [REPLAY[way][0] in calls for calls in found] == [False, True, True, False, True, True, False, True]
    assert [calls[: len(FORGET[way])] == FORGET[way] for calls in found] == [number in (3, 6) for number in range(8)]
    assert [RECORD[way][-1] in calls for calls in found] == [number in (1, 4, 7) for number in range(8)]


@BOTH
def test_ordered_launches_are_recorded_like_others(tmp_path: Path, way: str) -> None:
    plan = make_plan()
    first = plan.enqueues[0]
    kernel = replace(first.launch.kernel, form="ordered")
    plan.enqueues[0] = replace(first, launch=replace(first.launch, kernel=kernel))
    save_plan(plan, tmp_path / "a.plan")
    assert runs(tmp_path, *"000", STUB_EXTENSIONS=way)[1:] == [RECORD[way] + REPLAY[way], REPLAY[way]]


@pytest.mark.parametrize(
    "device",
    [
        {},
        {"STUB_EXTENSIONS": f"{KHR}_multi_device"},
        {"STUB_EXTENSIONS": KHR, "STUB_QUEUE": "1"},
        {"STUB_EXTENSIONS": KHR, "STUB_WITHOUT": "clFinalizeCommandBufferKHR"},
        {"STUB_EXTENSIONS": QCOM, "STUB_WITHOUT": "clEnqueueRecordingQCOM"},
        {"STUB_EXTENSIONS": QCOM, "STUB_RECORDABLE": "1"},
    ],
    ids=["nothing", "another extension", "other queues only", "a function less", "another less", "fewer launches"],
)
def test_launches_are_enqueued_where_recording_is_not_offered(tmp_path: Path, device: dict[str, str]) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    assert runs(tmp_path, *"000", **device) == [PLAIN] * 3


@BOTH
def test_the_application_may_forbid_it(tmp_path: Path, way: str) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    assert runs(tmp_path, *"000", record=-1, STUB_EXTENSIONS=way) == [PLAIN] * 3


@BOTH
def test_every_call_may_fail(tmp_path: Path, way: str) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    drive, stub = sanitized()
    said = run(
        drive, "faults", stub, tmp_path / "a.plan", tmp_path / "cache", env={**os.environ, "STUB_EXTENSIONS": way}
    )
    failed, _, rest = said.partition(" of ")
    assert int(failed) > int(rest.split()[0]) // 3, said
