"""Damaged models, plans, rule files and caches: none may end in a traceback, a hang or a signal.

`python bench/damaged.py 5000` draws so many inputs of all kinds from `--seed`, gives each to the library and prints how
many were accepted and refused, and everything else; the exit code is 1 if there was anything else.
`--kind KIND --number N` repeats one and shows its traceback.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.damage.cases import KINDS, judge
from tests.damage.workers import Outcome, outcomes

SHARES = {"model_bytes": 8, "model_fields": 20, "language_models": 6, "plan": 4, "rules": 5, "arrays": 1, "tunings": 2}
_SLOW = 5.0
_LARGE = 500.0


def main() -> int:
    """Draw, run, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first number that is drawn")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of the processor, after which an input counts as hanging"
    )
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--number", type=int, help="only this one, in this process")
    parser.add_argument("--few", action="store_true", help="draw from the models of the default tests only")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    arguments = parser.parse_args()
    if arguments.number is not None:
        with tempfile.TemporaryDirectory() as folder:
            verdict = judge(arguments.kind, arguments.number, Path(folder), arguments.few)
        print(verdict.outcome, verdict.text, sep="\n")
        return int(verdict.outcome == "bug")
    turns = [arguments.kind] if arguments.kind else [kind for kind, share in SHARES.items() for _ in range(share)]
    cases = [(turns[place % len(turns)], arguments.seed + place) for place in range(arguments.count)]
    found = []
    for outcome in outcomes(cases, arguments.seconds, arguments.few):
        found.append(outcome)
        if outcome.bad:
            print(f"{outcome.outcome} {outcome.kind} {outcome.number}: {outcome.text}", file=sys.stderr, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(outcome) for outcome in found], indent=1))
    print(report(found))
    return int(any(outcome.bad for outcome in found))


def report(found: list[Outcome]) -> str:
    """The counts by kind, and what took long or much memory."""
    lines = []
    for kind in KINDS:
        counts = Counter(outcome.outcome for outcome in found if outcome.kind == kind)
        if counts:
            lines.append(f"{kind}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    slow = [one for one in found if one.seconds > _SLOW and not one.bad]
    large = [one for one in found if one.megabytes > _LARGE and not one.bad]
    lines += [f"{one.seconds:.1f} s: {one.kind} {one.number}" for one in slow]
    lines += [f"{one.megabytes:.0f} MB: {one.kind} {one.number}" for one in large]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
