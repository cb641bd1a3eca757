"""Generated models through the C runtime: each plan's file has to give the bytes that Python's executor gives.

`python bench/c_generated.py --count 200 --seed 1` draws so many models from each of the generators (`--source NAME ...`
for some), writes their plans, and runs each in Python and in C: at the case's inputs, at others, at other extents, in
memory of the runtime's own and in memory of the application that holds NaN. One plan in three is NVIDIA's in half
precision, with emulated matrix units and kernels that share a launch; one in four tests itself. Exit code 1 if
anything differs, or ends the process.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from smartmem_rules.fuzzing.sources.by_name import SOURCES
from tests.runtime.c.generated import ASKED, case_in_c, compare
from tests.runtime.c.library import CError

DEFAULT = ("drawn", "quantised", "controlled", "large", "computed", "integer", "listed")
GOOD = ("equal", "refused", "none")
LIFETIME = 60
"""Cases after which a process is replaced."""
SECONDS = 600
"""How long a case may take before its process ends."""


def main() -> int:
    """Run the cases in processes of their own, and count; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", nargs="+", choices=sorted(SOURCES), default=DEFAULT)
    parser.add_argument("--count", type=int, default=50, help="from each source")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--asked", type=int, default=ASKED, help="one plan in so many tests itself")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    if arguments.one:
        for seed in seeds:
            signal.alarm(SECONDS)
            print(json.dumps(outcome(arguments.source[0], seed, arguments.asked)), flush=True)
        return 0
    failed = 0
    for source in arguments.source:
        kinds, waits, asked = Counter[str](), 0, 0
        for answer in answers(source, seeds, arguments.asked):
            kinds[answer["kind"]] += 1
            waits += answer.get("waits", False)
            asked += answer.get("asked", 0)
            if answer["kind"] not in GOOD:
                failed += 1
                print(f"{answer['kind']} {source} {answer['seed']}: {answer['detail']}", flush=True)
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        print(f"{source}: {counted}; {waits} with launches that wait, {asked} kernels asked", flush=True)
    return int(failed > 0)


def answers(source: str, seeds: range, asked: int) -> Iterator[dict[str, Any]]:
    """What became of each seed; a process that ends is an answer, too."""
    begin = seeds.start
    while begin < seeds.stop:
        count = min(LIFETIME, seeds.stop - begin)
        numbers = {"--seed": begin, "--count": count, "--asked": asked}
        options = [str(part) for pair in numbers.items() for part in pair]
        command = [sys.executable, __file__, "--one", "--source", source, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith('{"kind"'):
                    yield json.loads(line)
                    begin += 1
                    count -= 1
        if count:
            yield {"kind": "ended", "seed": begin, "detail": f"the process ended with {process.returncode}"}
            begin += 1


def outcome(source: str, seed: int, asked: int) -> dict[str, Any]:
    """What became of one seed."""
    try:
        case = case_in_c(source, seed)
    except Exception as failure:  # ONNX Runtime computes a case while it is drawn
        return {"kind": "none", "seed": seed, "detail": repr(failure)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = compare(case, Path(folder), seed % asked == 0)
        except CError as refusal:
            return {"kind": "refused in C", "seed": seed, "detail": f"{case.mode}: {refusal}"}
        except Exception as failure:  # whatever else is raised is looked for
            return {"kind": "error", "seed": seed, "detail": f"{case.mode}: {failure!r}"}
    detail = f"{case.mode}: {found.detail}"
    return {"kind": found.kind, "seed": seed, "detail": detail, "waits": found.waits, "asked": found.asked}


if __name__ == "__main__":
    sys.exit(main())
