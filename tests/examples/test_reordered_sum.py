"""A rule set that makes all orders of a sum runs for some rounds only."""

from __future__ import annotations

import numpy as np
import pytest

import smartmem_rules as sm
from examples.reordered_sum.model import RULES, build
from smartmem_rules.rulebase.checking import check_files
from smartmem_rules.statistics import SaturationStatistics
from tests.examples.custom import fired


def saturation_of(plan: sm.OptimizedPlan) -> SaturationStatistics:
    found = plan.plan.statistics.rewriting.saturation
    assert found is not None
    return found


def test_the_strategy_finds_the_common_factor_within_its_limits() -> None:
    found, _ = check_files([RULES])
    assert found == []
    plan = sm.optimize(build(), rules=[RULES], level="reordered")
    assert fired(plan, "factor_common_multiplicand") > 0
    phases = saturation_of(plan).phases
    assert [one.rulesets for one in phases] == [
        ("eliminate",),
        ("recognise", "algebra"),
        ("reorder", "algebra"),
        ("eliminate",),
    ]
    assert [one.stopped for one in phases] == [None, None, "8 rounds", None]
    feeds = plan.random_feeds()
    expected = feeds["x"] * (feeds["a"] + feeds["b"]) + sum(np.sin(feeds[f"t{place}"]) for place in range(3))
    np.testing.assert_allclose(plan.run(feeds)["y"], expected, rtol=2e-5, atol=1e-5)


def test_a_plan_file_remembers_the_phases(tmp_path_factory: pytest.TempPathFactory) -> None:
    plan = sm.optimize(build(between=1), rules=[RULES], level="reordered")
    path = tmp_path_factory.mktemp("plan") / "sum.plan"
    plan.save(path)
    assert saturation_of(sm.load(path)) == saturation_of(plan)


def test_its_rule_is_right() -> None:
    (report,) = sm.verify(RULES, jobs=1, trials=40).rules
    assert report.verdict in ("tested", "proved")
