"""An operator's own cost decides which form is extracted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import smartmem_rules as sm
from examples.own_cost.model import RULES, build
from smartmem_rules.extraction.cost import CostError
from smartmem_rules.rulebase.checking import check_files


def rules_without(folder: Path, *clauses: str) -> Path:
    text = RULES.read_text("utf-8")
    for clause in clauses:
        assert clause in text
        text = text.replace(clause, "")
    path = folder / "changed.smr"
    path.write_text(text)
    return path


def used(plan: sm.OptimizedPlan) -> bool:
    """Whether the form of the rule is in the plan."""
    made = plan.plan.statistics.rewriting.rules_of_node
    return any("scale_after_product" in rules for rules in made.values())


def test_it_is_taken_for_its_own_cost(tmp_path: Path) -> None:
    found, _ = check_files([RULES])
    assert found == []
    plan = sm.optimize(build(), rules=[RULES])
    assert used(plan)
    assert len(plan.kernels) == 1
    feeds = plan.random_feeds()
    np.testing.assert_allclose(plan.run(feeds)["y"], feeds["x"] @ (feeds["w"] * feeds["s"]), rtol=2e-4, atol=2e-5)
    derived = sm.optimize(build(), rules=[rules_without(tmp_path, "    cost launches = 0\n", "    cost bytes = 0\n")])
    assert not used(derived)


def test_a_cost_that_is_no_number_there_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "negative.smr"
    path.write_text(RULES.read_text("utf-8").replace("cost bytes = 0", "cost bytes = 500 - N * 10"))
    with pytest.raises(CostError, match=r"negative.smr:7:18: `cost bytes` is -140, not a number from zero on"):
        sm.optimize(build(), rules=[path])


def test_its_rule_is_right() -> None:
    (report,) = sm.verify(RULES, jobs=1, trials=40).rules
    assert report.verdict in ("tested", "proved")
