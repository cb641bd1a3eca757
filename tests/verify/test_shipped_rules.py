"""Every shipped rule in a bounded verification; SMARTMEM_VERIFY_SEED gives a fresh seed."""

from __future__ import annotations

import os

import pytest

import smartmem_rules as sm
from smartmem_rules.language.rulebase import load_rules
from smartmem_rules.verify.index_proofs import prove_index_rule

SEED = int(os.environ.get("SMARTMEM_VERIFY_SEED", "1"))
TRIALS = 60


def test_all_shipped_rules() -> None:
    found = sm.verify(seed=SEED, trials=TRIALS, budget=15)
    print(f"\nseed {found.seed}: {found.counts()} in {found.seconds:.0f} s")
    wrong = ["\n".join(r.counterexample.lines) for r in found.rules if r.counterexample is not None]
    assert not wrong, f"seed {SEED}\n" + "\n\n".join(wrong)
    for report in found.rules:
        assert report.verdict == "tested", (report.name, report.reason, SEED)
        assert report.trials >= TRIALS or report.reason, report.name


@pytest.mark.parametrize("rule", load_rules().index_rules, ids=lambda rule: rule.name)
def test_every_index_rule_is_proved(rule: object) -> None:
    pytest.importorskip("z3")
    proof = prove_index_rule(rule, milliseconds=20_000)  # type: ignore[arg-type]
    assert proof.answer == "proved", proof
