"""How much memory a process takes that optimizes and runs one model again and again.

`python bench/repeated.py mobilenetv2 --times 100` prints MiB in memory after some of the times; names are those of the
models that come with the project, or paths. Every plan is made anew; with `--kept` all but the first are found in a
store of plans, which is empty at the beginning. With `--cold` no kernel was compiled before: the compiler of OpenCL C
is loaded into this process and stays there. What the C library holds free is given back before each measurement, and
what it has in use is printed beside.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from markdown_tables import markdown
from networks import path

import smartmem_rules
from smartmem_rules.environment import CACHE, PLANS

SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Memory that a process takes, in MiB: all, and what the C library's allocator has in use."""

    resident: float
    used: float


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def taken() -> Taken:
    """What this process takes when nothing is held that could be given back."""
    gc.collect()
    library = ctypes.CDLL("libc.so.6")
    library.mallinfo2.restype = _Mallinfo
    library.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Taken(resident=pages * resource.getpagesize() / 2**20, used=library.mallinfo2().uordblks / 2**20)


def measured(model: str, times: int) -> dict[int, Taken]:
    """What is taken after each time, with the last plan still there."""
    found = {}
    for number in range(1, times + 1):
        plan = smartmem_rules.optimize(model)
        plan.run(plan.random_feeds(0))
        found[number] = taken()
    return found


def main() -> int:
    """Measure one model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--kept", action="store_true", help="plans are found in a store")
    parser.add_argument("--cold", action="store_true", help="no kernel was compiled before")
    arguments = parser.parse_args()
    model = path(arguments.name) if path(arguments.name).exists() else Path(arguments.name)
    with tempfile.TemporaryDirectory(prefix="smartmem-") as folder:
        os.environ[PLANS.name] = f"{folder}/plans" if arguments.kept else "off"
        if arguments.cold:
            os.environ[CACHE.name] = f"{folder}/cache"
        found = measured(str(model), arguments.times)
    shown = [number for number in found if number in SHOWN or number == arguments.times]
    rows = [
        ["MiB", *(f"{found[n].resident:.1f}" for n in shown)],
        ["in use, MiB", *(f"{found[n].used:.2f}" for n in shown)],
    ]
    print(markdown(" | ".join(["times", *map(str, shown)]), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
