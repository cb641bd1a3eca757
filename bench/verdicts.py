"""Verifies all built-in rules, with proofs, and writes the verdicts that ship with them.

python bench/verdicts.py            # rules/verdicts.json
python bench/verdicts.py --reports verify.json      # of a run of `smartmem verify --prove --json`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.verdicts import SHIPPED, shipped_text, shown
from smartmem_rules.verification.run import verify
from smartmem_rules.whole_files import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=Path, help="what `smartmem verify --prove --json` printed of these rules")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for one rule")
    given = parser.parse_args()
    if given.reports is None:
        found = verify(prove=True, budget=given.budget).data()
    else:
        found = json.loads(given.reports.read_text("utf-8"))
    base = load_rules()
    names = {rule.name for rule in base.rules()}
    verdicts = {
        one["name"]: shown(one["verdict"], one["method"], one["trials"])
        for one in found["rules"]
        if one["name"] in names
    }
    target = rules_path() / SHIPPED
    write_whole(target, shipped_text(verdicts, base).encode())
    print(f"{len(verdicts)} verdicts in {target}")


if __name__ == "__main__":
    main()
