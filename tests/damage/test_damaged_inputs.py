"""Damaged models, plans, rule files and caches end in one clear error or in a plan, never in a traceback."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from smartmem_rules.runtime.programs.compiling import BuildError
from tests.damage.cases import KINDS, judge
from tests.damage.workers import outcomes
from tests.with_all import with_all

COUNTS = {
    "model_bytes": with_all(24, 16),
    "model_fields": with_all(40, 16),
    "language_models": with_all(4, 2),
    "plan": with_all(8, 6),
    "rules": 6,
    "rule_trees": with_all(30, 10),
    "block_numbers": with_all(12, 5),
    "arrays": with_all(12, 10),
    "tunings": 10,
}
"""Cases of each kind in this process; many more run in workers with `--all`."""


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs(kind: str, fresh_seeds: bool, tmp_path: Path) -> None:
    first = time.time_ns() % 10**9 if fresh_seeds else 0
    for number in range(first, first + COUNTS[kind]):
        verdict = judge(kind, number, tmp_path, few=True)
        assert verdict.outcome != "bug", (
            f"python bench/damaged.py --few --kind {kind} --number {number}\n{verdict.text}"
        )
        if verdict.outcome == "refused":
            message = verdict.text.partition("Error: ")[2]
            assert 10 < len(message) < 20_000, message


@pytest.mark.exhaustive
def test_many_damaged_inputs() -> None:
    cases = [(kind, number) for number in range(100) for kind in KINDS]
    assert [one for one in outcomes(cases, seconds=120.0) if one.bad] == []


def test_a_kernel_that_does_not_compile_is_a_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def one_text_is_no_c(*arguments: object) -> None:
        del arguments
        raise BuildError("the kernel add_0 does not compile")

    monkeypatch.setitem(KINDS, "arrays", one_text_is_no_c)
    assert judge("arrays", 0, tmp_path, few=True).outcome == "bug"
