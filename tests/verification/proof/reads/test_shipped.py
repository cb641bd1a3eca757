"""All reads of built-in definitions are proved to stay inside their tensors."""

from __future__ import annotations

from collections import Counter

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.reads.written_reads import reads_of
from smartmem_rules.verification.reads import definitions, digest, shipped


def test_reads_of_built_in_definitions_are_proved() -> None:
    """Where it fails: `python bench/proved_reads.py` proves what is new, and says why a read is not proved."""
    base, known = load_rules(), shipped()
    left: Counter[str] = Counter()
    for operator in definitions(base):
        left[operator.name] += len(reads_of(operator)) - known.get(digest(base, operator), 0)
    assert not +left
