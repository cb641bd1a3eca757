"""Models of up to forty nodes, optimized at every level, on the device against ONNX's evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.plan.models import Model
from tests.plan.random_graphs import models
from tests.plan.running import LEVELS, Mode, drawing
from tests.plan.test_random_graphs import MODES, check
from tests.verification.any_operator import names, never_drawn, wide_models

pytestmark = pytest.mark.sampled(6)

MOST_NODES = 40
EXAMPLES = 2
WIDE_MODES = (Mode("smartmem"), Mode("smartmem", "image", "float16"), Mode("none"))
"""In a short run; all modes are drawn where `--examples` asks for more."""


@pytest.mark.parametrize("level", LEVELS)
def test_large_random_models(level: str, fresh_seeds: bool) -> None:
    @drawing(EXAMPLES, fresh_seeds)
    @given(model=models(most_steps=24).filter(lambda model: 8 <= len(model.proto.graph.node) <= MOST_NODES))
    def test(model: Model) -> None:
        check(model, Mode(level))

    test()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_models_of_any_operator(mode: Mode, fresh_seeds: bool, examples: int) -> None:
    if not examples and mode not in WIDE_MODES:
        pytest.skip("drawn with --examples N")

    @drawing(examples or EXAMPLES, fresh_seeds)
    @given(model=wide_models().filter(lambda model: len(model.proto.graph.node) <= MOST_NODES))
    def test(model: Model) -> None:
        check(model, mode)

    test()


def test_many_operators_are_drawn() -> None:
    missing = never_drawn(30, 1)
    print(f"\n{len(names()) - len(missing)} of {len(names())} operators in 30 draws")
    assert len(names()) - len(missing) >= 20
