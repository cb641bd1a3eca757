"""Models of up to forty nodes, optimized at every level, on the device against ONNX's evaluator."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.plan.models import Model
from tests.plan.random_graphs import models
from tests.plan.running import LEVELS, Mode
from tests.plan.test_random_graphs import check

MOST_NODES = 40
EXAMPLES = 2


@pytest.mark.parametrize("level", LEVELS)
def test_large_random_models(level: str, fresh_seeds: bool) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=not fresh_seeds,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(model=models(most_steps=24).filter(lambda model: 8 <= len(model.proto.graph.node) <= MOST_NODES))
    def test(model: Model) -> None:
        check(model, Mode(level))

    test()
