"""How much memory a process takes that optimizes and runs one model again and again.

`python bench/repeated.py mobilenetv2 --times 100` prints MiB in memory after some of the times; names are those of the
models that come with the project, or paths. Every plan is made anew; with `--kept` all but the first are found in a
store of plans, which is empty at the beginning.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

from markdown_tables import markdown
from networks import path

import smartmem_rules
from smartmem_rules.environment import PLANS

SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)


def resident() -> float:
    """MiB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measured(model: str, times: int) -> dict[int, float]:
    """MiB after each time, with the last plan still there."""
    taken = {}
    for number in range(1, times + 1):
        plan = smartmem_rules.optimize(model)
        plan.run(plan.random_feeds(0))
        taken[number] = resident()
    return taken


def main() -> int:
    """Measure one model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--kept", action="store_true", help="plans are found in a store")
    arguments = parser.parse_args()
    model = path(arguments.name) if path(arguments.name).exists() else Path(arguments.name)
    with tempfile.TemporaryDirectory(prefix="smartmem-plans-") as plans:
        os.environ[PLANS.name] = plans if arguments.kept else "off"
        taken = measured(str(model), arguments.times)
    shown = [number for number in taken if number in SHOWN or number == arguments.times]
    print(markdown(" | ".join(["times", *map(str, shown)]), [["MiB", *(f"{taken[n]:.1f}" for n in shown)]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
