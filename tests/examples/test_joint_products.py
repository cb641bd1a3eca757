"""Three products of one tensor become one, by a rule of three patterns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smartmem_rules as sm
from examples.joint_products.model import RULES, build
from smartmem_rules.certificate.certify import certify
from smartmem_rules.graph.importer import import_model
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.checking import check_files
from tests.examples.custom import fired


def launches(plan: sm.OptimizedPlan) -> list[str]:
    return [kernel.form for launch in plan.plan.launches for kernel in launch.kernels]


@pytest.mark.parametrize(("device", "level"), [("pocl", "eliminate"), ("pocl", "smartmem"), ("gpu", "smartmem")])
def test_one_product_takes_the_place_of_three(device: str, level: str) -> None:
    found, _ = check_files([RULES])
    assert found == []
    before = sm.optimize(build(units=2), level=level, device=device)
    after = sm.optimize(build(units=2), rules=[RULES], level=level, device=device)
    assert [fired(after, f"three_products.{place}") for place in (1, 2, 3)] == [2, 2, 2]
    assert len(after.plan.launches) <= len(before.plan.launches)
    assert launches(after).count("contraction") <= 2
    if level == "eliminate":
        assert len(before.plan.launches) == 6
        assert len(after.plan.launches) == 3
    if device == "pocl":
        assert after.check().passed


def test_each_equation_is_verified_by_itself(all_cases: bool) -> None:
    """One in `make test`, because the search for instances of each takes seconds."""
    names = ["three_products.1", "three_products.2", "three_products.3"]
    wanted = [None] if all_cases else names[:1]
    reports = [report for name in wanted for report in sm.verify(RULES, rule=name, jobs=1, trials=30).rules]
    assert [report.name for report in reports] == (names if all_cases else names[:1])
    assert {report.verdict for report in reports} <= {"tested", "proved"}


def test_a_wrong_equation_fails_and_the_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "wrong.smr"
    path.write_text(RULES.read_text().replace("Concat(a, b, c; axis = 1)", "Concat(a, c, b; axis = 1)"))
    verdicts = {report.name: report.verdict for report in sm.verify(path, jobs=1, trials=30).rules}
    assert verdicts["three_products.1"] in ("tested", "proved")
    assert verdicts["three_products.2"] == verdicts["three_products.3"] == "failed"


def test_a_plan_is_certified_with_a_step_for_each_equation(tmp_path: Path) -> None:
    base, model, path = load_rules([RULES]), build(), tmp_path / "certificate.json"
    sm.optimize(model, rules=[RULES], level="eliminate", certificate=path)
    certificate = json.loads(path.read_text())
    steps = [step["rule"] for step in certificate["steps"] if "rule" in step]
    assert sorted(steps) == ["three_products.1", "three_products.2", "three_products.3"]
    verdict = certify(import_model(model, base), base, certificate)
    assert not verdict.gaps
    assert not verdict.kernel_gaps


def test_other_types_of_a_right_side_are_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.smr"
    path.write_text(RULES.read_text().replace("ends = [o]", "ends = [o - 1]"))
    with pytest.raises(LanguageError) as caught:
        load_rules([path])
    assert {one.code for one in caught.value.diagnostics} <= {"SMR0310", "SMR0311"}
