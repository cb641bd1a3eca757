"""Generated models, planned in all ways: their plans give in C the bytes that Python's executor gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.fuzzing.case import load_case
from tests.runtime.c.generated import ASKED, case_in_c, compare

SOURCES = ("drawn", "quantised", "controlled", "large", "computed", "integer", "listed")
SEEDS = 40
CASES = Path(__file__).parents[2] / "fuzzing" / "cases"


@pytest.mark.sampled(70)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("source", SOURCES)
def test_generated_models(tmp_path: Path, source: str, seed: int) -> None:
    found = compare(case_in_c(source, seed), tmp_path, seed % ASKED == 0)
    assert found.kind in ("equal", "refused"), found.detail


def test_launches_that_wait(tmp_path: Path) -> None:
    found = compare(load_case(CASES / "launches_that_memory_would_part.onnx"), tmp_path, asked=True)
    assert (found.kind, found.waits) == ("equal", True), found.detail
    assert found.asked
