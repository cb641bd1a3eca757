"""Proves that the reads of the built-in definitions stay inside their tensors, and writes what ships with the rules.

python bench/proved_reads.py            # definitions that are new or have changed
python bench/proved_reads.py --all      # every definition anew, which takes long
python bench/proved_reads.py --open     # beside that, definitions with reads that are not proved
"""

from __future__ import annotations

import argparse
import json

from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.reads.open_reads import MOST_WAYS
from smartmem_rules.verification.proof.reads.written_reads import reads_of
from smartmem_rules.verification.reads import SHIPPED, definitions, digest, prove, shipped
from smartmem_rules.whole_files import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="prove every definition anew")
    parser.add_argument("--open", action="store_true", help="also definitions with reads that are not proved")
    parser.add_argument("--ways", type=int, default=MOST_WAYS, help="cases looked at for one definition, at most")
    given = parser.parse_args()
    base = load_rules()
    before = {} if given.all else shipped()
    known: dict[str, int] = {}
    target = rules_path() / SHIPPED
    for operator in definitions(base):
        key = digest(base, operator)
        reads = len(reads_of(operator))
        if key in before and before[key] <= reads and not (given.open and before[key] < reads):
            known[key] = before[key]
            continue
        found = prove(base, operator, given.ways)
        known[key] = max(found.proved, min(before.get(key, 0), reads))
        print(f"{operator.name}: {found.proved} of {found.total}", flush=True)
        for reason, count in found.reasons.items():
            print(f"  {count}: {reason}", flush=True)
        write_whole(target, (json.dumps({**before, **known}, indent=0) + "\n").encode())
    write_whole(target, (json.dumps(known, indent=0, sort_keys=True) + "\n").encode())
    print(f"{sum(known.values())} reads are proved, by {target}")


if __name__ == "__main__":
    main()
