"""A relative-position bias with a gather, defined in a rule file only."""

from __future__ import annotations

import numpy as np

from examples.relative_bias.model import RULES, build
from tests.examples.custom import by_definition, constants_of, fired, optimized


def test_it_runs_and_is_what_its_definition_says() -> None:
    model = build()
    plan = optimized(model, RULES)
    feeds = plan.random_feeds()
    outputs = plan.run(feeds)
    weights = constants_of(model)
    bias = (weights["near"] + weights["far"])[weights["distance"]].transpose(2, 0, 1)
    scores = feeds["q"] @ feeds["k"].transpose(0, 1, 3, 2) + bias
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares / shares.sum(-1, keepdims=True) @ feeds["v"]
    np.testing.assert_allclose(outputs["y"], expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(by_definition(model, RULES, feeds)["y"], expected, rtol=2e-4, atol=2e-5)


def test_its_rewrite_fires_and_it_fuses_with_its_neighbours() -> None:
    plan = optimized(build(), RULES)
    assert fired(plan, "one_relative_bias") > 0
    assert len(plan.kernels) <= 3
    assert all(not kernel.moves_only for kernel in plan.kernels)
