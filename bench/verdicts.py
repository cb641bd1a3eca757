"""Verifies the built-in rules that have no verdict, with proofs, and writes the verdicts that ship with the rules.

Rules read backwards, with which `smartmem fuzz` makes equal forms of models, have verdicts of their own.

python bench/verdicts.py            # rules that are new or have changed, or whose operators have
python bench/verdicts.py --all      # every rule anew, half an hour
"""

from __future__ import annotations

import argparse

from smartmem_rules.fuzzing.equal.rules import BACKWARDS, both_ways, may_be_admitted
from smartmem_rules.language.syntax import Rewrite
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.verdicts import SHIPPED, shipped, shipped_text, shown
from smartmem_rules.verification.run import judge_rules, rules_of
from smartmem_rules.whole_files import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="verify every rule anew")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for one rule")
    given = parser.parse_args()
    base = both_ways(load_rules())
    known = {} if given.all else dict(shipped(base))
    names = {rule.name for rule in base.rules() if not rule.name.endswith(BACKWARDS) or may_be_admitted(rule)}
    chosen = [
        place
        for place, rule in enumerate(rules_of(base))
        if rule.name in names - known.keys() and not (isinstance(rule, Rewrite) and rule.unsound is not None)
    ]
    for report in judge_rules(base, chosen, prove=True, budget=given.budget):
        known[report.name] = shown(report.verdict, report.method, report.trials)
        print(f"{report.name}: {known[report.name]}")
    target = rules_path() / SHIPPED
    write_whole(target, shipped_text(known, base).encode())
    print(f"{len(known)} verdicts in {target}")


if __name__ == "__main__":
    main()
