"""All reads of built-in definitions are proved to stay inside their tensors but those that are known."""

from __future__ import annotations

from collections import Counter

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.reads.open_reads import reads_of
from smartmem_rules.verification.reads import definitions, digest, shipped

OPEN = {"Slice": 1, "FusedAttention": 1, "QLinearConcat": 1, "QGemm": 3, "MatMulNBits": 3}
"""docs/verification.md says why; `python bench/proved_reads.py` proves what is new."""


def test_reads_of_built_in_definitions_are_proved() -> None:
    base, known = load_rules(), shipped()
    left: Counter[str] = Counter()
    for operator in definitions(base):
        left[operator.name] += len(reads_of(operator)) - known.get(digest(base, operator), 0)
    assert {name: count for name, count in left.items() if count} == OPEN
