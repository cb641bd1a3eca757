"""Planted errors are found, in rules of every kind; `smartmem verify --mutants` plants them in all."""

from __future__ import annotations

import pytest

from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.mutation.mutants import measure
from smartmem_rules.verification.mutation.mutate import _says_where_it_pays, mutants_of


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("rule", "least"),
    [
        pytest.param("factor_addend", 6, marks=pytest.mark.exhaustive),
        ("clip_of_relu", 4),
        pytest.param("scale_after_gemm", 8, marks=pytest.mark.exhaustive),
        pytest.param("depth_to_space", 10, marks=pytest.mark.exhaustive),
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


def test_every_mutant_is_another_rule() -> None:
    base = load_rules()
    given = {rule.name: rule for rule in (*base.rewrites, *base.eliminates, *base.index_rules, *base.tables.values())}
    kinds = set()
    for mutant in mutants_of(base):
        kinds.add(type(mutant.rule).__name__)
        if mutant.operator is not None:
            assert mutant.operator[0] != mutant.operator[1], f"{mutant.name}: {mutant.change}"
        else:
            assert mutant.rule != given.get(mutant.name), f"{mutant.name}: {mutant.change}"
    assert kinds == {"Rewrite", "Eliminate", "IndexRule", "Table", "Block"}


def test_every_guard_of_a_rewrite_is_weakened_or_says_where_the_rewrite_pays() -> None:
    base = load_rules()
    weakened = {(mutant.name, mutant.targeted) for mutant in mutants_of(base) if mutant.targeted is not None}
    for rule in base.rewrites:
        for guard in rule.guards if rule.unsound is None else ():
            assert (rule.name, guard) in weakened or _says_where_it_pays(guard), (
                f"{rule.name}: {print_expression(guard)}"
            )
