"""Plans with drawn sizes and emulated matrix units are other plans, and judged like all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import smartmem_rules as sm
from smartmem_rules.environment import COMPUTE_UNITS, EMULATED_UNITS, TUNINGS
from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.drawn_sizes import keep_sizes
from smartmem_rules.fuzzing.judge import RIGHT, judge
from tests.plan.models import model


def _case(mode: Mode) -> Case:
    draw = np.random.default_rng(5)
    x, w = (draw.normal(size=shape).astype(np.float32) for shape in ((40, 128), (128, 64)))
    proto = model([("MatMul", "x w", "s"), ("Relu", "s", "y")], {"x": x}, "y", {"w": w})
    return Case("product", proto, {"x": x}, mode)


@pytest.mark.parametrize("mode", [Mode(sizes=3), Mode(device="nvidia", sizes=4, units="8.0")], ids=str)
def test_drawn_sizes_reach_the_plan(mode: Mode, tmp_path: Path) -> None:
    case = _case(mode)
    with EMULATED_UNITS.set_to(mode.units):
        usual = sm.optimize(case.model, device=mode.device).plan
        assert keep_sizes(case, tmp_path / "tunings.sqlite") == 1
        with TUNINGS.set_to(str(tmp_path / "tunings.sqlite")):
            other = sm.optimize(case.model, device=mode.device).plan
    assert [s.text for s in usual.sources] != [s.text for s in other.sources]
    assert judge(case).kind == RIGHT


@pytest.mark.parametrize("units", ["8.0", "9.0"])
def test_emulated_units_multiply_the_halves_of_plans(units: str) -> None:
    mode = Mode(device="nvidia", dtype="float16", units=units)
    with EMULATED_UNITS.set_to(units):
        plan = sm.optimize(_case(mode).model, device="nvidia", dtype="float16").plan
    assert any("_multiply(" in source.text for source in plan.sources)
    assert judge(_case(mode)).kind == RIGHT


def test_what_is_no_capability_is_refused() -> None:
    with EMULATED_UNITS.set_to("eight"), pytest.raises(sm.errors.SmartmemError, match="SMARTMEM_EMULATED_UNITS=eight"):
        sm.optimize(_case(Mode()).model)


def test_a_case_without_a_device_is_an_error() -> None:
    verdict = judge(_case(Mode(device="none of this name")))
    assert verdict.failed
    assert "there is no device 'none of this name'" in verdict.detail


def test_plans_for_other_numbers_of_cores_are_judged() -> None:
    assert {judge(_case(Mode(cores=cores))).kind for cores in (1, 64)} == {RIGHT}


@pytest.mark.parametrize("asked", ["none", "0", "-1", "1.5", "70000"])
def test_what_is_no_number_of_cores_is_refused(asked: str) -> None:
    expected = f"SMARTMEM_COMPUTE_UNITS={asked} is no number"
    with COMPUTE_UNITS.set_to(asked), pytest.raises(sm.errors.SmartmemError, match=expected):
        sm.optimize(_case(Mode()).model)
