"""Planted errors are found, in rules of every kind; `smartmem verify --mutants` plants them in all."""

from __future__ import annotations

import pytest

from smartmem_rules.language.rulebase import load_rules
from smartmem_rules.verify.mutants import measure
from smartmem_rules.verify.mutate import mutants_of


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        ("factor_addend", 6),
        ("clip_of_relu", 4),
        ("scale_after_gemm", 8),
        ("depth_to_space", 10),
        ("squeeze", 0),
        ("mod_of_mod", 4),
        ("combine", 30),
        ("reduction_contiguous", 3),
    ],
)
def test_planted_errors_are_found(rule: str, least: int) -> None:
    found = measure(rule=rule, jobs=1)
    assert not found.survivors, [f"{f.change}: {f.reason}" for f in found.survivors]
    assert found.caught >= least
    assert all(f.reason for f in found.fates if f.outcome in ("equivalent", "discarded"))


def test_there_are_many_mutants_of_every_kind() -> None:
    kinds: dict[str, int] = {}
    for mutant in mutants_of(load_rules()):
        kinds[type(mutant.rule).__name__] = kinds.get(type(mutant.rule).__name__, 0) + 1
    assert kinds.keys() == {"Rewrite", "Eliminate", "IndexRule", "Table", "Block"}
    assert sum(kinds.values()) >= 400
