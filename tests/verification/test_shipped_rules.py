"""Every shipped rule in a bounded verification; `--fresh-seeds` draws others on every run."""

from __future__ import annotations

import random

import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.index_proofs import prove_index_rule

TRIALS = 60
FEW = 25
"""Trials of each rule where not all cases run; `smartmem verify` makes 200."""


def test_all_shipped_rules(fresh_seeds: bool, all_cases: bool) -> None:
    seed, trials = random.randrange(10**6) if fresh_seeds else 1, TRIALS if all_cases else FEW
    found = sm.verify(seed=seed, trials=trials, budget=15)
    print(f"\nseed {found.seed}: {found.counts()} in {found.seconds:.0f} s")
    wrong = ["\n".join(r.counterexample.lines) for r in found.rules if r.counterexample is not None]
    assert not wrong, f"seed {seed}\n" + "\n\n".join(wrong)
    for report in found.rules:
        undecided = report.verdict == "unknown" and report.reason is not None
        assert report.verdict == "tested" or undecided, (report.name, report.reason, seed)
        assert report.trials >= trials or report.reason, report.name


@pytest.mark.parametrize("rule", load_rules().index_rules, ids=lambda rule: rule.name)
def test_every_index_rule_is_proved(rule: object) -> None:
    pytest.importorskip("z3")
    proof = prove_index_rule(rule, milliseconds=20_000)  # type: ignore[arg-type]
    assert proof.answer == "proved", proof
