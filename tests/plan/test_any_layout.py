"""Whatever layouts are chosen, the outputs are right: random states of tensors in the place of the cheapest ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

from smartmem_rules.plan.layout.model import LayoutProblem
from smartmem_rules.plan.layout.pbqp import Chosen, Pbqp, Solution, Variable
from tests.plan.models import Model
from tests.plan.random_graphs import models
from tests.plan.running import Mode, drawing
from tests.plan.test_random_graphs import check
from tests.with_all import with_all

MODES = [
    Mode("layout", "preferred", device="adreno_740"),
    Mode("smartmem", "preferred", "float16", "adreno_740"),
    Mode("layout", "buffer"),
    Mode("smartmem", "buffer", device="nvidia"),
    Mode("smartmem", "image", device="nvidia"),
]
EXAMPLES = with_all(8, 3)


def wandered(problem: Pbqp, start: Mapping[Variable, int], random: np.random.Generator) -> Solution:
    """A choice that is possible and for the rest left to chance."""
    chosen: Chosen = dict(start)
    for _ in range(2):
        for number in random.permutation(len(chosen)):
            variable = list(chosen)[number]
            possible = np.flatnonzero(np.isfinite(problem.marginals(chosen)[variable]))
            chosen[variable] = int(random.choice(possible))
    cost = problem.cost(chosen)
    return Solution(chosen, True, cost, cost)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_any_choice_is_right(mode: Mode, fresh_seeds: bool, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # second layouts that never pay are possible all the same
    monkeypatch.setattr(LayoutProblem, "_can_pay", lambda problem, node, first, second: first + second < 4)
    monkeypatch.setattr(LayoutProblem, "_takes", lambda problem, touch, *numbers: touch.reads is not None)
    copied = []

    @drawing(examples or EXAMPLES, fresh_seeds)
    @given(model=models(), seed=st.integers(0, 2**32 - 1))
    def test(model: Model, seed: int) -> None:
        random = np.random.default_rng(seed)
        note(f"seed of the layouts {seed}")

        def solve(problem: Pbqp, start: Mapping[Variable, int], seconds: float) -> Solution:
            return wandered(problem, start, random)

        monkeypatch.setattr(Pbqp, "solve", solve)
        copies = LayoutProblem.copies

        def seen(problem: LayoutProblem, chosen: Mapping[tuple[str, str], int]) -> list[object]:
            found = copies(problem, chosen)
            copied.extend(found)
            return list(found)

        with monkeypatch.context() as patch:
            patch.setattr(LayoutProblem, "copies", seen)
            check(model, mode)

    test()
    assert examples or copied, "no second layout was tried"
