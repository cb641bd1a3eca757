"""What is proved of reads ships with the rules, by the content of each definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.reads.written_reads import reads_of
from smartmem_rules.verification.reads import count_reads, definitions, digest, prove, shipped


def test_no_definition_has_more_proved_reads_than_reads() -> None:
    base = load_rules()
    for operator in definitions(base):
        assert shipped().get(digest(base, operator), 0) <= len(reads_of(operator)), operator.name


def test_what_ships_is_of_the_definitions_as_they_stand() -> None:
    """Where it fails: `python bench/proved_reads.py` proves the reads of what has changed."""
    base = load_rules()
    unknown = [one.name for one in definitions(base) if digest(base, one) not in shipped() and reads_of(one)]
    assert len(unknown) < 10, unknown


@pytest.mark.parametrize("name", ["MatMul", "Gather", "Transpose", "ReverseSequence", "Softmax"])
def test_what_ships_is_proved_again(name: str) -> None:
    pytest.importorskip("z3")
    base = load_rules()
    for operator in definitions(base):
        if operator.name == name and (known := shipped().get(digest(base, operator))) is not None:
            assert prove(base, operator).proved == known, operator.span


def test_a_changed_definition_has_another_key(tmp_path: Path) -> None:
    text = "operator Probe<T: float>(x: T[N]) -> y: T[N] {{ internal y[i] = x[{}] }}\n"
    keys = set()
    for index in ("i", "N - 1 - i"):
        file = tmp_path / "own.smr"
        file.write_text(text.format(index))
        base = load_rules([file])
        keys.add(digest(base, base.operators["Probe"][0]))
    assert len(keys) == 2


def test_definitions_of_a_file_are_proved_when_it_is_checked(tmp_path: Path) -> None:
    pytest.importorskip("z3")
    file = tmp_path / "own.smr"
    file.write_text("operator Probe<T: float>(x: T[N]) -> y: T[N] { internal y[i] = x[i] + x[N - 1 - i] }\n")
    counted = count_reads(load_rules([file]), [file])
    assert (counted.proved, counted.total) == (2, 2)
    assert str(counted) == "reads proved: 2 of 2"
