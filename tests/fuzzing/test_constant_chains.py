"""Constants of extreme elements one after the other: at each level a plan gives what the model's own order gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smartmem_rules.fuzzing.case import LEVELS, Mode
from smartmem_rules.fuzzing.judge import NO_REFERENCE, REFUSED, RIGHT, judge
from smartmem_rules.fuzzing.sources.by_name import chained

ONCE_WRONG = (2620000051, 2620000060, 2620000136)
"""Seeds of models that were wrong while rules put all constants together."""
MODELS = 40


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_constants_that_were_put_together_wrongly(seed: int, level: str) -> None:
    case = replace(chained(seed), mode=Mode(level=level))
    verdict = judge(case)
    assert verdict.kind == RIGHT, verdict.detail


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(MODELS))
def test_drawn_chains_are_right(seed: int) -> None:
    """What fails is reproduced by `python bench/fuzz.py --source chained --seed SEED --count 1`."""
    verdict = judge(chained(seed))
    assert verdict.kind in (RIGHT, REFUSED, NO_REFERENCE), verdict.detail


def test_a_chain_does_not_begin_with_nothing() -> None:
    """The first input of this seed has an extent of 0."""
    assert chained(2620110400).model.graph.node
