"""The wrong results of others that are listed: what is expected is what ONNX's own evaluator says, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.wrong_results import FINDINGS, Wrong, evaluator_disagrees

DOCUMENT = Path(__file__).parents[2] / "docs" / "hunting.md"


@pytest.mark.parametrize("wrong", FINDINGS, ids=lambda wrong: wrong.title)
def test_the_evaluator_agrees_with_the_definition(wrong: Wrong) -> None:
    assert evaluator_disagrees(wrong) == ""


def test_every_finding_is_documented() -> None:
    text = DOCUMENT.read_text()
    missing = [wrong.title for wrong in FINDINGS if wrong.title not in text]
    assert not missing, "python bench/wrong_results.py --write docs/hunting.md"
