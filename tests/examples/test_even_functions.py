"""One rule for several operators, own ones among them."""

from __future__ import annotations

import numpy as np

import smartmem_rules as sm
from examples.even_functions.model import RULES, build
from tests.examples.custom import fired, optimized


def test_signs_are_forgotten() -> None:
    plan = optimized(build(), RULES)
    assert fired(plan, "sign_of_even.Neg.Bump") > 0
    assert fired(plan, "sign_of_even.Abs.Rectified") > 0
    feeds = plan.random_feeds()
    expected = np.exp(-(feeds["x"] ** 2)) * np.maximum(np.abs(feeds["x"]), 0.25)
    np.testing.assert_allclose(plan.run(feeds)["y"], expected, rtol=2e-5, atol=1e-6)


def test_all_its_rules_are_right() -> None:
    reports = sm.verify(RULES, jobs=1, trials=40).rules
    assert len(reports) == 8
    assert {report.verdict for report in reports} <= {"tested", "proved"}
