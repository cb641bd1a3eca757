"""Plants errors in the built-in rules and says which the verifier finds, as `smartmem verify --mutants`, in pieces.

What is judged is kept in a file, a line each; a run goes on where the last one ended, until its seconds are over.

python bench/mutants.py build/mutants.jsonl --seconds 400      # again and again, until it says that none is left
python bench/mutants.py build/mutants.jsonl --seconds 0        # what is there
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.verification.mutation.mutants import Fate, MutantReport, judge_mutant
from smartmem_rules.verification.mutation.mutate import Mutant, mutants_of

_work: _Work | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path, help="the file of what is judged")
    parser.add_argument("--seconds", type=float, default=400.0, help="by the clock, after which no mutant is begun")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    base = load_rules()
    seen: Counter[tuple[str, str]] = Counter()
    known = _known(given.kept)
    given.kept.parent.mkdir(parents=True, exist_ok=True)
    mutants = []
    for mutant in mutants_of(base):
        seen[mutant.name, mutant.change] += 1
        mutants.append((mutant, (mutant.name, mutant.change, seen[mutant.name, mutant.change])))
    random.Random(given.seed).shuffle(mutants)  # so that those of any beginning are a fair sample
    # weakened guards last: most say only where a rule pays, and all instances are tried before that is known
    mutants.sort(key=lambda one: one[0].targeted is not None)
    waiting = [(mutant, key) for mutant, key in mutants if key not in known]
    fates = [known[key] for _, key in mutants if key in known]
    work = _Work(mutants=[mutant for mutant, _ in waiting], base=base, seed=given.seed, until=until)
    gc.collect()  # an e-graph that nothing holds any more needs threads to end, which forked workers do not have
    pool = get_context("fork").Pool(given.jobs, initializer=_start, initargs=(work,))
    with given.kept.open("a", encoding="utf-8") as file, pool:
        for number, fate in pool.imap_unordered(_judged, range(len(waiting))):
            if fate is not None:
                file.write(json.dumps({"number": waiting[number][1][-1], **asdict(fate)}) + "\n")
                file.flush()
                fates.append(fate)
    left = len(mutants) - len(fates)
    _show(MutantReport(fates, sum(one.seconds for one in fates)), left)


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What all processes know; `until` is by the monotonic clock."""

    mutants: list[Mutant]
    base: RuleBase
    seed: int
    until: float


def _start(work: _Work) -> None:
    global _work
    _work = work


def _judged(number: int) -> tuple[int, Fate | None]:
    """What became of one of the mutants, if there is time left."""
    assert _work is not None
    in_time = time.monotonic() < _work.until
    return number, judge_mutant(_work.mutants[number], _work.base, _work.seed) if in_time else None


def _known(path: Path) -> dict[tuple[str, str, int], Fate]:
    """What is judged: by rule, change, and which of the changes of one text it is."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        data = json.loads(line)
        number = data.pop("number")
        found[data["rule"], data["change"], number] = Fate(**data)
    return found


def _show(report: MutantReport, left: int) -> None:
    for fate in report.survivors:
        print(f"survived: {fate.rule}: {fate.change} ({fate.reason})")
    for kind, (caught, total) in sorted(report.by_kind().items()):
        print(f"{kind}: {caught} of {total}")
    share = report.caught / report.total if report.total else 1.0
    print(
        f"{report.total} wrong mutants, {report.caught} caught ({share:.1%}); {report.equivalent} true rules, "
        f"{report.discarded} that never apply; {report.seconds:.0f} s of processor time; {left} left"
    )


if __name__ == "__main__":
    main()
