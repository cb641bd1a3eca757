"""A normalization with two reductions, defined in a rule file only."""

from __future__ import annotations

import numpy as np

from examples.range_normalization.model import RULES, build
from tests.examples.custom import by_definition, constants_of, fired, optimized


def test_it_runs_and_is_what_its_definition_says() -> None:
    model = build()
    plan = optimized(model, RULES)
    feeds = plan.random_feeds()
    outputs = plan.run(feeds)
    weights = constants_of(model)
    total = feeds["x"] + feeds["r"]
    low, high = total.min(-1, keepdims=True), total.max(-1, keepdims=True)
    expected = ((total - low) / (high - low + 1e-5) * weights["s"] * weights["c"]) @ weights["w"]
    np.testing.assert_allclose(outputs["y"], expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(by_definition(model, RULES, feeds)["y"], expected, rtol=2e-4, atol=2e-5)


def test_its_rewrite_fires_and_it_fuses_with_its_neighbours() -> None:
    plan = optimized(build(), RULES)
    assert fired(plan, "scale_of_range") > 0
    assert len(plan.kernels) <= 2
