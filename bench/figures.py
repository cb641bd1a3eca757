"""Figures of plans that need no device: kernels, what they move, seconds, memory, gap of the extraction.

`python bench/figures.py kernels` prints the kernels of each level beside what is asked, `seconds` the CPU time of each
stage, `memory` the device memory of activations, `gap` the extraction's gap to the bound, `layouts` what the choice of
layouts brings; several names print several tables. Each model is planned in a process of its own; `--save FILE` keeps
the figures as JSON lines, and takes them from there again.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from markdown_tables import markdown
from networks import KERNELS, PAPER, named, path

LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")
STAGES = ("import", "saturate", "extract", "plan", "emit")
PLANNING = ("calibrate", "fuse", "layout", "verify", "schedule", "launch", "memory")
"""The stages that the tables show as `plan`."""
WANTED = {
    "kernels": LEVELS,
    "seconds": ("smartmem",),
    "memory": ("dnnfusion", "smartmem"),
    "gap": ("smartmem",),
    "layouts": ("smartmem",),
}


class Stopwatch:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds["plan" if name in PLANNING else name] += time.process_time() - start

    def show(self, name: str, text: Callable[[], str]) -> None:
        """Nobody looks at the results of stages."""


def figures(model: Path | Any, level: str, device: str, memory: str) -> dict[str, Any]:
    """Plan a model and say what is known of the plan."""
    from smartmem_rules.explanation.report import report_data
    from smartmem_rules.pipeline import Request, make_plan

    watch = Stopwatch()
    plan, _ = make_plan(Request(model, (), device, level, "float32", memory, (), {}), watch)
    report = report_data(plan, None, None)
    return {
        "kernels": len(plan.launches),
        "moves": [one.name for one in plan.launches if one.moves_only],
        "operators": report["operators"],
        "seconds": watch.seconds,
        "memory": report["intermediate_bytes"],
        "extraction": report["extraction"],
        "layouts": report["layouts"],
    }


def collect(names: list[str], levels: list[str], arguments: argparse.Namespace) -> dict[tuple[str, str], Any]:
    """The figures of models at levels, each from a process of its own."""
    known = {}
    if arguments.save is not None and arguments.save.exists():
        known = {tuple(key): value for key, value in map(json.loads, arguments.save.read_text().splitlines())}
    found = {}
    for name in names:
        for level in levels:
            key = (name, level, arguments.device, arguments.memory)
            if key not in known:
                print(*key, file=sys.stderr, flush=True)
                command = [sys.executable, __file__, "--one", *key]
                ran = subprocess.run(command, capture_output=True, text=True, check=False)
                if ran.returncode:
                    print(f"{name} {level}: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                    continue
                known[key] = json.loads(ran.stdout)
                if arguments.save is not None:
                    with arguments.save.open("a") as out:
                        out.write(json.dumps([key, known[key]]) + "\n")
            found[name, level] = known[key]
    return found


def kernels_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """Kernels by level beside what is asked, and those that only move data."""
    rows, moves, total = [], 0, 0
    for name in names:
        one = found.get((name, "smartmem"))
        if one is None:
            continue
        must, reach = KERNELS.get(name, (None, None))
        counts = [str(found[name, level]["kernels"]) if (name, level) in found else "-" for level in LEVELS]
        verdict = (
            "-" if must is None else "reached" if one["kernels"] <= reach else "yes" if one["kernels"] <= must else "no"
        )
        rows.append([name, str(one["operators"]), *counts, f"{must} / {reach}", verdict, str(len(one["moves"]))])
        moves, total = moves + len(one["moves"]), total + one["kernels"]
    header = f"model | operators | {' | '.join(LEVELS)} | asked / reach | met | that only move data"
    share = f"{moves} of {total} kernels at level smartmem only move data ({moves / max(1, total):.2%})"
    return f"{markdown(header, rows)}\n\n{share}"


def seconds_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """CPU seconds by stage; the first use of the libraries is part of `import`."""
    rows = []
    for name in names:
        if (name, "smartmem") in found:
            seconds = found[name, "smartmem"]["seconds"]
            rows.append([name, *(f"{seconds[s]:.2f}" for s in STAGES), f"{sum(seconds.values()):.2f}"])
    return markdown(f"model | {' | '.join(STAGES)} | all", rows)


def memory_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """Peak activation memory against a buffer for each tensor, of the plan and of the model, and against dnnfusion."""
    rows, means = [], []
    for name in names:
        if (name, "smartmem") not in found or (name, "dnnfusion") not in found:
            continue
        mine, theirs = (found[name, level]["memory"] for level in ("smartmem", "dnnfusion"))
        used = max(1, mine["reused"])
        apart, model = mine["separate"] / used, mine["model"] / used
        less = 1 - used / max(1, theirs["reused"])
        rows.append([
            name, f"{used / 1e6:.2f}", f"{mine['bound'] / 1e6:.2f}", mine["status"], f"{mine['separate'] / 1e6:.2f}",
            f"{apart:.1f}", f"{mine['model'] / 1e6:.1f}", f"{model:.1f}", f"{theirs['reused'] / 1e6:.2f}",
            f"{less:.0%}",
        ])  # fmt: skip
        if name in PAPER:
            means.append((apart, model, less))
    header = (
        "model | MB | bound | proof | one each MB | times less | model's MB | times less | dnnfusion MB | less than it"
    )
    if not means:
        return markdown(header, rows)
    apart, model, less = (sum(values) / len(means) for values in zip(*means, strict=True))
    mean = (
        f"Mean of {len(means)} of the paper's 18: {apart:.1f} times less than a buffer for each tensor of the plan, "
        f"{model:.1f} times less than one for each tensor of the model, {less:.0%} less than level dnnfusion."
    )
    return f"{markdown(header, rows)}\n\n{mean}"


def gap_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """The stated gap of the extraction."""
    ones = [(n, found[n, "smartmem"]["extraction"]) for n in names if (n, "smartmem") in found]
    rows = [[n, str(e["status"]), f"{e['gap']:.3%}"] for n, e in ones]
    proved = sum(e["status"] == "optimal" for _, e in ones)
    return f"{markdown('model | status | gap', rows)}\n\nproved optimal on {proved} of {len(ones)}"


def layouts_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """What layouts cost that are chosen edge by edge, and for the whole graph, in modelled time."""
    rows, ratios = [], []
    for name in names:
        one = found.get((name, "smartmem"), {}).get("layouts")
        if one is None:
            continue
        ratios.append(one["local_cost"] / one["cost"])
        counts = [str(one[k]) for k in ("tensors", "images", "buffers", "copies", "copy_kernels")]
        costs = [f"{one[k] / 1000:.2f}" for k in ("local_cost", "cost", "bound")]
        rows.append([name, *counts, *costs, f"{ratios[-1]:.2f}", f"{one['gap']:.2%}", f"{one['seconds']:.2f}"])
    header = (
        "model | tensors | images | buffers | copies | copy kernels | local ms | program ms | bound ms | "
        "ratio | gap | s"
    )
    mean = math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))
    return f"{markdown(header, rows)}\n\ngeometric mean of {len(ratios)}: {mean:.2f}\n\n{joint_table(names, found)}"


def joint_table(names: list[str], found: dict[tuple[str, str], Any]) -> str:
    """Kernels and layouts chosen together, beside the two steps one after the other, in modelled time."""
    rows, proved, ones = [], 0, []
    for name in names:
        one = found.get((name, "smartmem"), {}).get("layouts", {}).get("joint")
        if one is None:
            continue
        ones.append(one["two_step_cost"] / one["cost"])
        proved += one["status"] == "optimal"
        counts = [str(one[k]) for k in ("by_rules", "kernels", "alternatives", "regions", "changed")]
        costs = [f"{one[k] / 1000:.3f}" for k in ("local_cost", "two_step_cost", "cost", "bound")]
        rows.append([name, *counts, *costs, one["status"], f"{one['gap']:.2%}", f"{one['seconds']:.2f}"])
    header = (
        "model | rules | chosen | competing | regions | changed | local ms | stepwise ms "
        "| joint ms | bound ms | status | gap | seconds"
    )
    mean = math.exp(sum(map(math.log, ones)) / max(1, len(ones)))
    text = f"proved optimal on {proved} of {len(ones)}; two steps over joint, geometric mean: {mean:.4f}"
    return f"{markdown(header, rows)}\n\n{text}"


def main() -> int:
    """Plan, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[], metavar="TABLE", help=", ".join(WANTED))
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--device", default="pocl")
    parser.add_argument("--memory", default="auto")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--one", nargs=4, metavar="WORD", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, level, device, memory = arguments.one
        print(json.dumps(figures(path(name), level, device, memory)))
        return 0
    names = named(arguments.models)
    tables = arguments.tables or list(WANTED)
    levels = [level for level in LEVELS if any(level in WANTED[t] for t in tables)]
    found = collect(names, levels, arguments)
    printers = {
        "kernels": kernels_table,
        "seconds": seconds_table,
        "memory": memory_table,
        "gap": gap_table,
        "layouts": layouts_table,
    }
    print("\n\n".join(printers[t](names, found) for t in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
