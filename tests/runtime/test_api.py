"""The Python interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import smartmem_rules as sm
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.devices import DeviceError, choose
from smartmem_rules.stages import STAGES
from tests.cli import onnx_files


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return onnx_files.chain(tmp_path_factory.mktemp("models") / "chain.onnx")


def test_importing_loads_none_of_the_libraries() -> None:
    program = "import smartmem_rules, sys; print(*{'egglog', 'onnx', 'pyopencl', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


def test_a_path_bytes_and_a_proto_are_the_same(model: Path) -> None:
    proto = onnx.load(str(model))
    results = []
    for source in (model, str(model), model.read_bytes(), proto):
        plan = sm.optimize(source)
        results.append(plan.run(plan.random_feeds())["y"])
        assert plan.check().passed
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_saved_plan_gives_the_same_numbers(model: Path, tmp_path: Path) -> None:
    plan = sm.optimize(model)
    plan.save(tmp_path / "chain.plan")
    loaded = sm.load(tmp_path / "chain.plan")
    feeds = plan.random_feeds(3)
    np.testing.assert_array_equal(loaded.run(feeds)["y"], plan.run(feeds)["y"])
    assert len(loaded.kernels) == len(plan.kernels)
    assert loaded.explain("/matmul") == plan.explain("/matmul")
    assert loaded.check(model).passed
    with pytest.raises(ValueError, match="give it"):
        loaded.check()


def test_progress_names_the_stages(model: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    sm.optimize(model, progress=lambda *step: seen.append(step))
    wanted = [stage for stage in STAGES if stage not in ("calibrate", "probes")]  # of float16, of plans with probes
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == wanted
    assert all(done <= total for _, done, total in seen)


def test_level_none_skips_the_rules(model: Path) -> None:
    plan = sm.optimize(model, level="none")
    seconds = plan.report_data()["seconds"]
    assert seconds["saturate"] == seconds["extract"] == 0
    assert len(plan.kernels) == 4


def test_a_rule_can_be_left_out(model: Path) -> None:
    with_rule = sm.optimize(model).report_data()
    without = sm.optimize(model, disable=["transpose"]).report_data()
    assert with_rule["layout_operators"]["after"] == 0
    assert without["kernels"] >= with_rule["kernels"]


def test_a_tolerance_that_cannot_be_met(model: Path) -> None:
    check = sm.optimize(model, dtype="float16").check(tolerance=1e-9)
    assert check.passed is False
    assert check.max_relative_error is not None
    assert check.max_relative_error > 1e-9


@pytest.mark.parametrize("argument", [{"dtype": "float8"}, {"memory": "tape"}])
def test_arguments_that_are_no_choice(model: Path, argument: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is none of"):
        sm.optimize(model, **argument)  # type: ignore[arg-type]


def test_a_plan_for_a_device_that_is_not_here(model: Path) -> None:
    plan = sm.optimize(model)
    elsewhere = sm.OptimizedPlan(plan.plan, None)
    with pytest.raises(DeviceError, match="no OpenCL device here"):
        elsewhere.run(plan.random_feeds())


def test_choosing_devices() -> None:
    auto = choose()
    assert choose(auto.place) == auto
    assert choose(auto.name[:5].lower()) == choose(auto.platform)
    with pytest.raises(DeviceError, match="there is no device 'abacus'"):
        choose("abacus")


def test_a_saved_plan_runs_on_the_device_of_a_profile(model: Path, tmp_path: Path) -> None:
    sm.optimize(model, device="pocl").save(tmp_path / "a.plan")
    plan = sm.load(tmp_path / "a.plan", device="pocl")
    assert plan.device == choose("pocl", load_rules().devices)
    with pytest.raises(DeviceError, match=r"there is no device 'poc1'.* profiles: adreno_740, "):
        sm.load(tmp_path / "a.plan", device="poc1")


def test_explaining_an_unknown_node(model: Path) -> None:
    with pytest.raises(GraphError, match=r"did you mean `/relu`"):
        sm.optimize(model).explain("/rilu")
