"""A gated activation with two inputs, defined in a rule file only."""

from __future__ import annotations

import numpy as np

from examples.gated_activation.model import RULES, build
from tests.examples.custom import by_definition, constants_of, fired, optimized


def test_it_runs_and_is_what_its_definition_says() -> None:
    model = build()
    plan = optimized(model, RULES)
    feeds = plan.random_feeds()
    outputs = plan.run(feeds)
    weights = constants_of(model)
    gate = feeds["x"] @ weights["b"] * weights["scale"]
    expected = (feeds["x"] @ weights["a"] / (1 + np.exp(-gate))) @ weights["c"]
    np.testing.assert_allclose(outputs["y"], expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(by_definition(model, RULES, feeds)["y"], expected, rtol=2e-4, atol=2e-5)


def test_its_rewrite_fires_and_it_fuses_with_its_neighbours() -> None:
    plan = optimized(build(), RULES)
    assert fired(plan, "scale_of_gate") + fired(plan, "scale_after_matmul") > 0
    assert len(plan.kernels) <= 3
    assert plan.explain("activated")["kernels"]
