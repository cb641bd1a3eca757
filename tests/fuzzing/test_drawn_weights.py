"""Plans with drawn weights of layouts are other plans, and judged like all."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.drawn_weights import LEVELS, write_weights
from smartmem_rules.fuzzing.judge import RIGHT, judge
from smartmem_rules.rulebase.base import load_rules
from tests.plan.models import i64, model, normal


def _recurrences(mode: Mode) -> Case:
    nodes = [
        ("LSTM", "x w r", "p", {"hidden_size": 8}),
        ("Squeeze", "p one", "a"),
        ("LSTM", "a v s", "q", {"hidden_size": 8}),
        ("Squeeze", "q one", "y"),
    ]
    constants = {"w": normal(1, 32, 12), "r": normal(1, 32, 8), "v": normal(1, 32, 8), "s": normal(1, 32, 8)}
    x = normal(6, 3, 12)
    return Case("recurrences", model(nodes, {"x": x}, "y", {**constants, "one": i64(1)}), {"x": x}, mode)


@pytest.mark.parametrize("level", LEVELS)
def test_drawn_weights_reach_the_plan(level: str, tmp_path: Path) -> None:
    gains = set()
    for seed in range(1, 9):
        write_weights(tmp_path / "weights.smr", level, seed)
        base = load_rules([tmp_path / "weights.smr"])
        weights = base.layouts[base.levels["drawn"].layout]
        gains.add(weights.copy_gain)
        assert base.levels["drawn"].fuse == base.levels[level].fuse
    assert len(gains) > 2


def test_recurrences_with_drawn_weights_are_right() -> None:
    """Of eight draws some have a gain of 1e-6, with which a copy of a state was read before it was written."""
    verdicts = [judge(_recurrences(Mode(device="adreno_740", weights=seed))) for seed in range(1, 9)]
    assert {verdict.kind for verdict in verdicts} == {RIGHT}, verdicts


def test_a_mode_with_drawn_weights_says_so() -> None:
    assert "weights 7" in str(Mode(weights=7))
