"""Convolutions that CPUs filter in tiles, of data with NaN, infinities and large numbers here and there."""

from __future__ import annotations

import pytest

from smartmem_rules.emit.plan import finish
from smartmem_rules.fuzzing.judge import RIGHT, judge
from smartmem_rules.fuzzing.sources.by_name import filtered
from smartmem_rules.pipeline import Request, make_planning

ONCE_WRONG = (2660900001, 2660900009)
"""Seeds of models that were wrong while an element changed all outputs of the tiles that it lies in."""
MODELS = 24
FILTERED_SHARE = 0.4


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_elements_that_changed_outputs_beside_them(seed: int) -> None:
    verdict = judge(filtered(seed))
    assert verdict.kind == RIGHT, verdict.detail


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(MODELS))
def test_drawn_convolutions_are_right(seed: int) -> None:
    """What fails is reproduced by `python bench/fuzz.py --source filtered --seed SEED --count 1`."""
    verdict = judge(filtered(seed))
    assert verdict.kind == RIGHT, verdict.detail


def test_many_of_them_are_filtered() -> None:
    count = 0
    for seed in range(10):
        case = filtered(seed)
        plan = finish(make_planning(Request(case.model, (), "auto", "smartmem", "float32", "auto", (), {}))[0])
        count += any(kernel.template == "winograd" for launch in plan.launches for kernel in launch.kernels)
    assert count >= 10 * FILTERED_SHARE
