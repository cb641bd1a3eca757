"""A short run of the generator, and the failures that earlier runs found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smartmem_rules.fuzzing.campaigns.campaign import answers_here, drawn_requests, run
from smartmem_rules.fuzzing.case import load_case
from smartmem_rules.fuzzing.judge import judge

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.onnx"))
FIRST_SEED = 1
MODELS = 200
PARTS = 4
"""How many tests the models are spread over, so that several processes share them."""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_kept_cases_are_right(path: Path) -> None:
    verdict = judge(load_case(path))
    assert verdict.kind == "right", verdict.detail


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_models_are_right(part: int, fresh_seeds: bool, examples: int) -> None:
    """What fails is reproduced by `python bench/fuzz.py --source small --seed SEED --count 1`."""
    each = (examples or MODELS) // PARTS
    first = int.from_bytes(os.urandom(4), "little") if fresh_seeds else FIRST_SEED
    requests = drawn_requests("small", first + part * each, each)
    summary = run(answers_here(requests, jobs=1), folder=None)
    failed = [f"{f.request} ({f.mode}) {f.verdict.kind}: {f.verdict.detail}" for f in summary.failures]
    assert not failed, "\n".join(failed)
    assert summary.verdicts["right"] > 0.9 * summary.total, summary.data()
