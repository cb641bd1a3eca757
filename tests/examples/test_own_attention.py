"""Scores of an attention as an operator of its own, taken apart by a rule that computes the divisor."""

from __future__ import annotations

import numpy as np

import smartmem_rules as sm
from examples.own_attention.model import RULES, build
from tests.examples.custom import by_definition, fired, optimized


def test_it_runs_and_is_what_its_definition_says() -> None:
    model = build()
    plan = optimized(model, RULES)
    feeds = plan.random_feeds()
    scores = feeds["q"] @ feeds["k"].swapaxes(-1, -2) / np.sqrt(feeds["q"].shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ feeds["v"]
    np.testing.assert_allclose(plan.run(feeds)["y"], expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(by_definition(model, RULES, feeds)["y"], expected, rtol=2e-4, atol=2e-5)


def test_its_scores_become_part_of_the_attention() -> None:
    plan = optimized(build(), RULES)
    assert fired(plan, "scores_taken_apart") > 0
    assert len(plan.kernels) == 1


def test_its_rule_is_right() -> None:
    (report,) = sm.verify(RULES, jobs=1, trials=60).rules
    assert report.verdict in ("tested", "proved")
