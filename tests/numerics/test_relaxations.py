"""docs/numerics.md lists the shipped rules that may change a NaN or an infinity."""

from __future__ import annotations

import re
from pathlib import Path

from smartmem_rules.rulebase.base import load_rules

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"


def test_rules_that_may_change_infinities_are_listed() -> None:
    section = PAGE.read_text("utf-8").split("## What rewrites may change")[1].split("\n## ")[0]
    rules = [rule for rule in load_rules().rewrites if rule.unsound is None]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    assert {rule.name for rule in rules if "infinities" in rule.relaxes} == listed
    assert not [rule.name for rule in rules if "nan" in rule.relaxes]
    zeros = [rule for rule in rules if "signed_zero" in rule.relaxes]
    assert f"`signed_zero` ({len(zeros)} rules)" in section
