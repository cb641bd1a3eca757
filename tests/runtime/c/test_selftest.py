"""Plans that test themselves in C: a kernel that is wrong is named and replaced, or the plan does not open."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.plan_file import save_plan
from tests.emit.kernel_cases import CASES, KernelCase
from tests.plan.models import normal
from tests.probes.asked import asking
from tests.runtime.c.library import CError, open_by_an_older_program, open_plan, run, sanitized
from tests.runtime.format.files import resealed
from tests.runtime.plans import make_asking_plan, make_plan
from tests.runtime.selftest.faults import changed

BAD_ARGUMENT, BAD_PLAN, WRONG_KERNEL = 1, 8, 16
PRODUCT = KernelCase(
    nodes=[("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")],
    feeds={"x": normal(10, 48)},
    constants={"w": normal(48, 24, seed=1), "b": normal(24)},
    templates="panel",
)


def driven(path: Path, cache: Path | str, wrong: str, log: Path) -> tuple[int, str]:
    """What the library says of a plan on the stub, which computes the named kernels wrongly."""
    drive, stub = sanitized()
    environment = {**os.environ, "STUB_WRONG": wrong, "STUB_LOG": str(log)}
    status, _, text = run(drive, "selftest", stub, path, cache, env=environment).partition(" ")
    return int(status), text


def enqueues(log: Path) -> int:
    """How often a kernel was enqueued; beside the questions, two kernels run four times."""
    return log.read_text().split().count("clEnqueueNDRangeKernel") - 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_plan(make_asking_plan(), tmp_path / "a.plan")
    return tmp_path / "a.plan"


def test_right_kernels_are_asked_once_on_a_device(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert driven(path, tmp_path / "cache", "", log) == (0, "")
    assert enqueues(log) == 2
    assert driven(path, tmp_path / "cache", "", log) == (0, "")
    assert enqueues(log) == 0


def test_a_wrong_kernel_is_replaced_and_named_also_the_next_time(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = driven(path, tmp_path / "cache", "add_0", log)
    assert enqueues(log) == 3
    assert found == (
        0,
        "stub device (Stub, driver 1.0, OpenCL 3.0 stub): the kernel add_0 (launches 0; global size 6 x 10, local size "
        "of the driver): t[3, 7] is 19.5 and must be 19; 1 of 60 elements differ; spare 0 runs instead\n",
    )
    assert driven(path, tmp_path / "cache", "add_0", log) == found
    assert enqueues(log) == 0


def test_the_cache_by_the_descriptor_of_a_folder(path: Path, tmp_path: Path) -> None:
    cache, log = tmp_path / "cache", tmp_path / "log"
    cache.mkdir()
    for expected in (2, 0):
        assert driven(path, f"fd:{cache}", "", log) == (0, "")
        assert enqueues(log) == expected
    assert driven(path, cache, "", log) == (0, "")
    assert enqueues(log) == 0
    status, text = driven(path, f"fd:{path}", "", log)
    assert status == BAD_ARGUMENT
    assert "is that of no folder" in text


def test_where_spares_are_wrong_the_kernel_is_built_without_optimization(path: Path, tmp_path: Path) -> None:
    status, text = driven(path, tmp_path / "cache", "add_0,add_spare", tmp_path / "log")
    assert status == 0
    assert "-cl-opt-disable runs instead" in text


def test_a_plan_whose_kernel_nothing_replaces_does_not_open(path: Path, tmp_path: Path) -> None:
    for _ in range(2):
        status, text = driven(path, tmp_path / "cache", "twice_1,twice", tmp_path / "log")
        assert status == WRONG_KERNEL
        for part in ("stub device (Stub, driver 1.0", "twice_1 (launches 1; global size 6 x 10, local size 1 x 1)"):
            assert part in text
        assert "y[3, 7] is 34.5 and must be 34 (at most 0.125 apart); 1 of 60 elements differ" in text


@pytest.mark.parametrize("field", ["width", "count"])
def test_damaged_questions_are_refused(path: Path, tmp_path: Path, field: str) -> None:
    def change(index: object) -> None:
        rows = index.probes[0].fillings[0].rows  # type: ignore[attr-defined]
        setattr(rows, field, getattr(rows, field) + 1)

    path.write_bytes(resealed(path.read_bytes(), change))
    assert driven(path, tmp_path / "cache", "", tmp_path / "log")[0] == BAD_PLAN


def test_a_damaged_answer_is_noticed_when_it_is_needed(path: Path, tmp_path: Path) -> None:
    def change(index: object) -> None:
        index.probes[0].answers[0].rows.different.sum ^= 1  # type: ignore[attr-defined]

    path.write_bytes(resealed(path.read_bytes(), change))
    assert driven(path, tmp_path / "cache", "", tmp_path / "log")[0] == BAD_PLAN


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.holds_ptx])
def test_no_false_alarm(tmp_path: Path, name: str) -> None:
    plan = asking(CASES[name])
    save_plan(plan, tmp_path / "a.plan")
    with open_plan(tmp_path / "a.plan", self_test=1) as opened:
        assert opened.self_test == ""


def planted(plan: Plan, spares: bool) -> Plan:
    """The plan with a fault in its first kernel, as if the driver's compiler had made it."""
    made = changed(plan.enqueues[0].source.text, "a loop that ends too early", random.Random(1))
    assert made is not None
    first = replace(plan.enqueues[0], source=replace(plan.enqueues[0].source, text=made))
    return replace(plan, enqueues=[first if spares else replace(first, spares=()), *plan.enqueues[1:]])


def test_a_planted_fault_is_replaced_by_a_spare(tmp_path: Path) -> None:
    plan = asking(PRODUCT)
    assert plan.enqueues[0].spares
    save_plan(planted(plan, spares=True), tmp_path / "a.plan")
    right = Executor(plan, choose()).run(PRODUCT.feeds)
    with open_plan(tmp_path / "a.plan", self_test=1) as opened, opened.session() as session:
        assert "spare 0 runs instead" in opened.self_test
        np.testing.assert_allclose(session.run(PRODUCT.feeds)["y"], right["y"], rtol=1e-5)


def test_a_planted_fault_without_a_spare_is_an_error(tmp_path: Path) -> None:
    plan = asking(PRODUCT)
    save_plan(planted(plan, spares=False), tmp_path / "a.plan")
    with pytest.raises(CError, match="nothing the plan has is right") as caught, open_plan(tmp_path / "a.plan"):
        pass
    assert caught.value.status == WRONG_KERNEL
    device, launch = choose(), plan.enqueues[0].launch
    assert all(part in str(caught.value) for part in (device.name, device.driver, launch.name, "y[", "must be"))
    with open_plan(tmp_path / "a.plan", self_test=-1) as opened:
        assert opened.self_test == ""


def test_programs_that_know_less_of_the_options(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    with open_by_an_older_program(tmp_path / "a.plan") as opened:
        assert opened.info.launches == 2
