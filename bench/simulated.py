"""Simulated memory accesses, cache misses and time: level `dnnfusion` over level `smartmem`, for all models.

`python bench/simulated.py` prints a table and the means over the paper's 18 networks; `--levels` names other levels,
each of which is compared with `smartmem`; `--save FILE` keeps what was simulated as JSON lines, and takes it from there
again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from markdown_tables import markdown
from networks import PAPER, named, path

from smartmem_rules.simulate.sampling import Effort
from smartmem_rules.views.simulated_levels import simulate_levels

HEADER = (
    "model | kernels | accesses M | ratio | misses M | ratio | of the shared cache | MB | ratio | estimated ms | "
    "ratio | error of accesses, misses"
)


def main() -> int:
    """Simulate, then print."""
    arguments = parse()
    known = read(arguments.save)
    rows, ratios = [], []
    for name in named(arguments.models):
        levels = [*arguments.levels.split(","), "smartmem"]
        for level in levels:
            key = f"{name} {level} {arguments.device} {arguments.memory} {arguments.dtype}"
            if key not in known:
                start = time.process_time()
                how = {k: getattr(arguments, k) for k in ("device", "memory", "dtype")}
                how["effort"] = Effort(arguments.exact, arguments.window)
                known[key] = simulate_levels(path(name), [level], **how)["levels"][level]
                del known[key]["by_kernel"]
                print(f"{key}: {time.process_time() - start:.0f} s of CPU", file=sys.stderr, flush=True)
                write(arguments.save, key, known[key])
        one = [known[f"{name} {level} {arguments.device} {arguments.memory} {arguments.dtype}"] for level in levels]
        for level, before in zip(levels[:-1], one[:-1], strict=True):
            ratio = compared(before, one[-1])
            rows.append(row(f"{name} {level}" if len(levels) > 2 else name, before, one[-1], ratio))
            ratios.append((name, level, ratio))
    print(markdown(HEADER, rows))
    for level in arguments.levels.split(","):
        mine = [r for name, of, r in ratios if of == level and name in PAPER]
        if mine:
            means = {key: statistics.mean(r[key] for r in mine) for key in mine[0]}
            text = ", ".join(f"{key} {value:.2f}x" for key, value in means.items())
            print(f"\nmean of {len(mine)} of the paper's 18 networks, {level} over smartmem: {text}")
    return 0


def compared(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """The figures of one level over those of another."""
    ratios = {key: before[key] / after[key] for key in ("accesses", "misses", "bytes", "estimated_ms")}
    shared = [one["memories"]["l2"]["misses"] for one in (before, after)]
    return {**ratios, "shared cache misses": shared[0] / shared[1]}


def row(name: str, before: dict[str, Any], after: dict[str, Any], ratio: dict[str, float]) -> list[str]:
    """One line of the table."""

    def both(key: str, unit: float, form: str = ".1f") -> str:
        return f"{before[key] / unit:{form}} → {after[key] / unit:{form}}"

    shared = [one["memories"]["l2"]["misses"] / 1e6 for one in (before, after)]
    worst = {key: max(one["relative_error"][key] for one in (before, after)) for key in ("accesses", "misses")}
    return [
        name, f"{before['kernels']} → {after['kernels']}", both("accesses", 1e6), f"{ratio['accesses']:.2f}",
        both("misses", 1e6), f"{ratio['misses']:.2f}", f"{shared[0]:.2f} → {shared[1]:.2f}", both("bytes", 1e6, ".0f"),
        f"{ratio['bytes']:.2f}", both("estimated_ms", 1), f"{ratio['estimated_ms']:.2f}",
        f"{worst['accesses']:.1%}, {worst['misses']:.1%}",
    ]  # fmt: skip


def read(file: Path | None) -> dict[str, Any]:
    """What was simulated before."""
    if file is None or not file.exists():
        return {}
    return {key: value for line in file.read_text().splitlines() for key, value in json.loads(line).items()}


def write(file: Path | None, key: str, value: Any) -> None:
    """Keep one result."""
    if file is not None:
        with file.open("a") as out:
            out.write(json.dumps({key: value}) + "\n")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of examples/models; all by default")
    parser.add_argument("--levels", default="dnnfusion", help="separated by commas")
    parser.add_argument("--device", default="adreno_740")
    parser.add_argument("--memory", default="device")
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--exact", type=int, default=100_000, help="accesses up to which a launch is followed whole")
    parser.add_argument("--window", type=int, default=30_000, help="accesses of each of the windows of a larger one")
    parser.add_argument("--save", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
