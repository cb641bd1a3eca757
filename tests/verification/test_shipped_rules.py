"""Every shipped rule in a bounded verification; `--fresh-seeds` draws others on every run."""

from __future__ import annotations

import random

import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.index_proofs import prove_index_rule

TRIALS = 60
RULES = sorted(rule.name for rule in load_rules().rules() if getattr(rule, "unsound", None) is None)
"""All but those that are kept as warnings: `test_verdicts` holds that they are wrong."""


SEARCHED_LONG = {
    "biased_convolution_of_integers", "elementwise_product_of_integers", "gemm_of_integers", "mean_of_integers",
    "scaled_gemm_of_turned_integers",
}  # fmt: skip
"""Rules of whose instances few satisfy all guards: several seconds each, with --all."""


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] if n in SEARCHED_LONG else []) for n in RULES]
)
def test_shipped_rules(name: str, fresh_seeds: bool) -> None:
    seed = random.randrange(10**6) if fresh_seeds else 1
    found = sm.verify(rule=name, seed=seed, trials=TRIALS, budget=15, jobs=1)
    wrong = ["\n".join(r.counterexample.lines) for r in found.rules if r.counterexample is not None]
    assert not wrong, f"seed {seed}\n" + "\n\n".join(wrong)
    for report in found.rules:
        undecided = report.verdict == "unknown" and (report.reason or "").startswith("the time was over")
        assert report.verdict == "tested" or undecided, (report.name, report.reason, seed)
        assert report.trials >= TRIALS or report.reason, report.name


@pytest.mark.parametrize("rule", load_rules().index_rules, ids=lambda rule: rule.name)
def test_every_index_rule_is_proved(rule: object) -> None:
    pytest.importorskip("z3")
    proof = prove_index_rule(rule, milliseconds=20_000)  # type: ignore[arg-type]
    assert proof.answer == "proved", proof
