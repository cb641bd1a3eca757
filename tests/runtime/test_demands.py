"""A plan that a device cannot run says so before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules.plan.artefact import Demands
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.plan_file import load_plan, save_plan
from tests.runtime.plans import change_source, make_plan

NVIDIA = {"capability": (8, 0)}


@pytest.mark.parametrize(
    ("demands", "local", "device", "message"),
    [
        (Demands(), 1000, {}, ""),
        (Demands(), 1000, {"local_memory": 999}, "twice_1 takes 1000 bytes of local memory, and .* has 999"),
        (Demands(arrays=1000, arrays_capability=(8, 0)), 1000, {"local_memory": 999} | NVIDIA, ""),
        (Demands(arrays=1000, arrays_capability=(9, 0)), 1000, {"local_memory": 999} | NVIDIA, "has 999"),
        (Demands(arrays=1000), 1000, {"local_memory": 999}, "has 999"),
        (Demands(capability=(8, 0)), 0, NVIDIA, ""),
        (Demands(capability=(8, 6)), 0, NVIDIA, "compute capability 8.6, which"),
        (Demands(extensions=("cl_nothing",)), 0, {"extensions": ("cl_nothing",)}, ""),
        (Demands(extensions=("cl_nothing",)), 0, {"extensions": ("cl_nothings",)}, "needs the extension cl_nothing, "),
    ],
)
def test_limits_are_asked_of_the_device(
    tmp_path: Path, demands: Demands, local: int, device: dict[str, object], message: str
) -> None:
    plan = replace(make_plan(), demands=demands)
    change_source(plan, 1, local_bytes=local)
    save_plan(plan, tmp_path / "a.plan")
    plan = load_plan(tmp_path / "a.plan")
    assert (plan.demands, plan.sources[1].local_bytes) == (demands, local)
    there = replace(choose(), **device)  # type: ignore[arg-type]
    if not message:
        Executor(plan, there)
        return
    with pytest.raises(RunError, match=message):
        Executor(plan, there)
