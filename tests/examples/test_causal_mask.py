"""A mask that is known by its elements becomes part of the soft maximum."""

from __future__ import annotations

import numpy as np
import pytest

import smartmem_rules as sm
from examples.causal_mask.model import RULES, build
from tests.examples.custom import constants_of, fired, optimized


@pytest.mark.parametrize(("diagonal", "fires"), [(1, True), (2, False)])
def test_only_a_causal_mask_is_taken_in(diagonal: int, fires: bool) -> None:
    model = build(diagonal=diagonal)
    plan = optimized(model, RULES)
    assert bool(fired(plan, "causal_softmax")) is fires
    feeds = plan.random_feeds()
    scores = feeds["q"] @ feeds["k"] + constants_of(model)["mask"]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ feeds["v"]
    np.testing.assert_allclose(plan.run(feeds)["y"], expected, rtol=2e-4, atol=2e-5)


def test_its_rule_is_right() -> None:
    (report,) = sm.verify(RULES, jobs=1, trials=60).rules
    assert report.verdict in ("tested", "proved")
