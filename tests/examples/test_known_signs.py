"""Rectifiers of what is never below zero disappear, by facts that rules derive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import smartmem_rules as sm
from examples.known_signs.model import RULES, build
from smartmem_rules.api import certify
from smartmem_rules.rulebase.checking import check_files
from tests.examples.custom import fired
from tests.with_all import with_all

WRONG = """analysis natural(e: float): bool merge or
    means not (e < 0)
derive of_difference natural(Sub(x, y)) where natural(x), natural(y)
derive of_rest natural(Sub(4, x)) where natural(x)
derive of_ratio natural(Div(x, y)) where natural(x), natural(y)
derive of_curve natural(Tanh(x))
rewrite signed in algebra
    Abs(x) => x
    where natural(x)
"""


@pytest.mark.parametrize("level", ["eliminate", "smartmem"])
def test_the_outputs_are_right_without_the_rectifiers(level: str) -> None:
    found, _ = check_files([RULES])
    assert found == []
    plan = sm.optimize(build(), rules=[RULES], level=level)
    assert fired(plan, "rectified_already") > 0
    assert fired(plan, "positive_already") > 0
    assert plan.check().passed


def test_a_constant_below_zero_keeps_its_absolute_value() -> None:
    plan = sm.optimize(build(offset=-1.0), rules=[RULES], level="eliminate")
    assert fired(plan, "positive_already") == 0
    assert plan.check().passed


def test_each_derivation_is_verified() -> None:
    reports = {report.name: report for report in sm.verify(RULES, jobs=1, trials=with_all(30, 20), prove=True).rules}
    assert {report.verdict for report in reports.values()} == {"tested", "proved"}
    for name in ("of_values.Relu", "of_squares", "of_sums", "of_products", "rectified_already", "positive_already"):
        assert reports[name].verdict == "proved"


def test_wrong_derivations_and_signs_of_zero_are_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.smr"
    path.write_text(WRONG)
    reports = sm.verify(path, jobs=1, trials=60).rules
    assert {report.name: report.verdict for report in reports} == dict.fromkeys(
        ("of_difference", "of_rest", "of_ratio", "of_curve", "signed"), "failed"
    )


def test_what_rests_on_a_fact_is_listed_as_uncertified(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    sm.optimize(build(), rules=[RULES], level="eliminate", certificate=path)
    certificate = json.loads(path.read_text())
    assert "rectified_already" not in {step.get("rule") for step in certificate["steps"]}
    assert certificate["uncertified"]
    verdict = certify(build(), path, rules=[RULES])
    assert verdict.gaps
