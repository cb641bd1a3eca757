"""docs/operators.md says what the rules say: nobody writes into it by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.operators import PAGE, page, rows, with_figures_of
from smartmem_rules.rulebase.base import load_rules


@pytest.mark.exhaustive  # derives the classes of all operators at the operands of ONNX's node tests
def test_the_page_is_what_its_script_writes() -> None:
    text = PAGE.read_text("utf-8")
    assert with_figures_of(text, page(rows(load_rules()), [])) == text, (
        "`python bench/operators.py --write docs/operators.md` writes it anew, and keeps the figures of node tests"
    )


def test_the_page_lists_all_operators_and_how_many_overloads_they_have() -> None:
    overloads: Counter[str] = Counter()
    for operator in (one for group in load_rules().operators.values() for one in group if not one.internal):
        binding = operator.onnx
        is_own = binding is None or binding.domain in ("", "ai.onnx")
        name = operator.name if binding is None else binding.name
        overloads[name if is_own else f"{binding.domain}::{name}"] += 1  # type: ignore[union-attr]
    listed = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").split("\n## ")[0].splitlines()]
    assert {cells[0]: int(cells[2]) for cells in listed if len(cells) > 4 and cells[2].isdigit()} == overloads
