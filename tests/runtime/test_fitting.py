"""Which of several plans `load` takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules import load
from smartmem_rules.plan.artefact import Demands, Plan
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.devices import DeviceError, choose
from smartmem_rules.runtime.fitting import fitting
from smartmem_rules.runtime.plan_file import PlanFileError, save_plan
from tests.runtime.plans import change_source, constant_values, make_plan

PHONE = Demands(names=("Adreno.*740", "("))


def here(kind: str = "") -> Demands:
    """Of the device of this computer, by its name or by its type."""
    return Demands(types=(choose().kind,)) if kind else Demands(names=(choose().platform.upper(),))


def made(target: str, demands: Demands, local_bytes: int = 0) -> Plan:
    plan = make_plan()
    change_source(plan, 1, local_bytes=local_bytes)
    return replace(plan, device=target, demands=demands)


@pytest.mark.parametrize("turned", [False, True])
def test_the_name_of_a_device_comes_before_its_type(tmp_path: Path, turned: bool) -> None:
    plans = [made("type", here("type")), made("phone", PHONE), made("name", here())]
    paths = [tmp_path / f"{number}.plan" for number in range(3)]
    for path, plan in zip(paths, plans[::-1] if turned else plans, strict=True):
        save_plan(plan, path)
    x = np.ones((6, 10), np.float32)
    for place in (paths, tmp_path, str(tmp_path)):
        plan = load(place)
        assert plan.plan.device == "name"
        np.testing.assert_array_equal(plan.run({"x": x})["y"], (x + constant_values()) * 2)


def test_of_plans_that_are_equally_near_the_first_is_taken() -> None:
    plans = [made("first", here()), made("second", here())]
    assert fitting(plans).plan.device == "first"
    assert fitting(plans[::-1]).plan.device == "second"


def test_a_plan_that_the_device_cannot_run_is_passed_over() -> None:
    large = made("large", here(), local_bytes=1 << 40)
    assert fitting([large, made("type", here("type"))]).plan.device == "type"


def test_where_none_is_for_the_device_the_message_says_why(tmp_path: Path) -> None:
    plans = [made("phone", PHONE), made("large", here(), local_bytes=1 << 40)]
    with pytest.raises(RunError, match="none of the 2 plans is for") as caught:
        fitting(plans)
    assert "plan 1, for phone: it is for devices of another name" in str(caught.value)
    assert "plan 2, for large: the kernel twice_1 takes 1099511627776 bytes of local memory" in str(caught.value)
    with pytest.raises(DeviceError, match="no device 'nothing"):
        fitting(plans, "nothing like it")
    with pytest.raises(PlanFileError, match="has no file `"):
        load(tmp_path)
    with pytest.raises(PlanFileError, match="no plan is given"):
        load([])


def test_one_file_runs_on_any_device_that_can(tmp_path: Path) -> None:
    save_plan(made("phone", PHONE), tmp_path / "a.plan")
    assert load(tmp_path / "a.plan").run({"x": np.zeros((6, 10), np.float32)})["y"].shape == (6, 10)
    with pytest.raises(RunError, match="of another name"):
        load([tmp_path / "a.plan"])
