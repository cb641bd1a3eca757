"""A device that computes a kernel wrongly is found, named, and its kernel replaced."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules import load
from smartmem_rules.environment import SELF_TEST
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.selftest.report import KeptReports, ReplacedKernelWarning, WrongKernelError, key
from smartmem_rules.runtime.selftest.testing import asker_of, executor_of, self_test
from tests.emit.kernel_cases import CASES, KernelCase
from tests.plan.models import normal
from tests.probes.asked import asking
from tests.runtime.selftest.faults import FAULTS, changed, compiled_instead

PRODUCT = KernelCase(
    nodes=[("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")],
    feeds={"x": normal(10, 48)},
    constants={"w": normal(48, 24, seed=1), "b": normal(24)},
    templates="panel",
)
SUM = "a product subtracted, not added"
SHORT = "a loop that ends too early"


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device, with a cache of its own."""
    found = choose("auto")
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SELF_TEST.name, raising=False)
    return found


@pytest.fixture
def plan() -> Plan:
    return asking(PRODUCT)


def faulty(plan: Plan, kind: str = SHORT, seed: int = 1) -> tuple[str, str]:
    """The text of the plan's first kernel, and one with a fault."""
    text = plan.enqueues[0].source.text
    made = changed(text, kind, random.Random(seed))
    assert made is not None
    return text, made


def test_a_wrong_kernel_is_named(device: Device, plan: Plan) -> None:
    with compiled_instead(*faulty(plan)):
        report = self_test(Executor(plan, device))
    assert [one.launches for one in report.findings] == [(0,)]
    said = str(report)
    launch, source = plan.enqueues[0].launch, plan.enqueues[0].source
    for part in (device.name, device.platform, device.driver, launch.name, str(source.global_size), "y[", "must be"):
        assert part in said


def test_another_schedule_takes_its_place(device: Device, plan: Plan) -> None:
    assert plan.enqueues[0].spares
    feeds = {name: array for name, array in PRODUCT.feeds.items()}
    right = Executor(plan, device).run(feeds)
    with compiled_instead(*faulty(plan)), pytest.warns(ReplacedKernelWarning, match="spare 0"):
        tested = executor_of(plan, device)
    found = tested.executor.run(feeds)
    np.testing.assert_allclose(found["y"], right["y"], rtol=1e-5)


def test_without_another_the_plan_does_not_run(device: Device, plan: Plan) -> None:
    old, new = faulty(plan)
    alone = replace(plan, enqueues=[replace(one, spares=()) for one in plan.enqueues])
    with compiled_instead(old, new), pytest.raises(WrongKernelError, match="nothing the plan has is right"):
        executor_of(alone, device)


def test_a_report_is_kept_and_taken(device: Device, plan: Plan) -> None:
    first = executor_of(plan, device).report
    assert first is not None
    assert not first.kept
    again = executor_of(plan, device).report
    assert again is not None
    assert again.kept
    assert again == first


def test_a_kept_report_replaces_kernels_at_once(device: Device, plan: Plan) -> None:
    with compiled_instead(*faulty(plan)), pytest.warns(ReplacedKernelWarning):
        executor_of(plan, device)
    with pytest.warns(ReplacedKernelWarning):
        tested = executor_of(plan, device)
    assert tested.report is not None
    assert tested.report.kept
    assert tested.executor.plan.enqueues[0].source.text == plan.enqueues[0].spares[0].text


def test_another_driver_is_asked_again(device: Device, plan: Plan) -> None:
    assert key(plan, device) != key(plan, replace(device, driver="2.0"))
    other = replace(plan, enqueues=[replace(plan.enqueues[0], source=plan.enqueues[0].spares[0])])
    assert key(plan, device) != key(other, device)


def test_a_damaged_report_is_none(device: Device, plan: Plan) -> None:
    kept = KeptReports.of_user()
    kept.write(plan, device, self_test(Executor(plan, device)))
    assert kept.folder is not None
    assert kept.read(plan, device) is not None
    (kept.folder / key(plan, device)).write_text('{"device": 1}')
    assert kept.read(plan, device) is None


def test_it_can_be_switched_off(device: Device, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SELF_TEST.name, "off")
    assert executor_of(plan, device).report is None


def test_a_plan_from_a_file_tests_itself(device: Device, plan: Plan, tmp_path: Path) -> None:
    save_plan(plan, tmp_path / "a.plan")
    loaded = load(tmp_path / "a.plan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.prepare()
    assert loaded.self_test is not None
    assert loaded.self_test.asked == 1
    with compiled_instead(*faulty(plan)):
        broken = self_test(Executor(loaded.plan, device))
    assert broken.findings[0].replacement == "spare 0"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("name", ["panel", "reduction", "pointwise"])
def test_planted_faults_are_found(device: Device, kind: str, name: str) -> None:
    """bench/self_test.py plants 100 in whole models."""
    case = next(one for key_, one in CASES.items() if one.templates == name and one.device == "pocl")
    plan = asking(case)
    text = changed(plan.enqueues[0].source.text, kind, random.Random(3))
    if text is None:
        pytest.skip(f"the kernel has no place for {kind}")
    source = replace(plan.enqueues[0].source, text=text)
    executor = Executor(plan, device)
    right = executor.run(case.feeds)
    wrong = Executor(
        replace(plan, enqueues=[replace(plan.enqueues[0], source=source), *plan.enqueues[1:]]), device
    ).run(case.feeds)
    if all(np.allclose(wrong[one], right[one], rtol=1e-5, atol=1e-6, equal_nan=True) for one in right):
        pytest.skip(f"{kind} changes nothing here")
    probes = [probe for probe in plan.probes if probe.launches[0] == 0]
    assert any(True for _ in asker_of(executor).of_other(probes, source)), text
