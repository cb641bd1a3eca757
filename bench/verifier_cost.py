"""What part of an optimization's processor time the checks of the stages' results take.

`python bench/verifier_cost.py mobilenetv2 swin_tiny` optimizes each model at two levels, once to warm up and then
`--times` times, in one process, and prints medians; names are those of the models that come with the project, or paths,
and without names a list of them is taken. Kernels were compiled before, which makes the part as large as it can be.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from markdown_tables import markdown
from networks import path

import smartmem_rules
from smartmem_rules.environment import PLANS, VERIFY

NAMES = ("mmoe", "lstm10", "mobilenetv2", "resnet50", "swin_tiny", "vit_base", "bert_base", "yolov8n")
LEVELS = ("none", "smartmem")
MOST = 0.05
"""The part that the checks may take."""


def measured(model: Path, level: str) -> tuple[float, float]:
    """Seconds of processor time of one optimization: of the checks, and of all."""
    checks, begun = 0.0, 0.0

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal checks, begun
        if stage == "verify" and done == 0:
            begun = time.process_time()
        elif stage == "verify":
            checks += time.process_time() - begun

    start = time.process_time()
    smartmem_rules.optimize(model, level=level, progress=progress)
    return checks, time.process_time() - start


def main() -> int:
    """Measure, print, and fail where the checks take more than they may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    os.environ.pop(VERIFY.name, None)
    os.environ[PLANS.name] = "off"
    rows, largest = [], 0.0
    for name in arguments.names:
        model = path(name) if path(name).exists() else Path(name)
        row = [name]
        for level in LEVELS:
            measured(model, level)
            runs = [measured(model, level) for _ in range(arguments.times)]
            part = statistics.median(checks / whole for checks, whole in runs)
            whole = statistics.median(whole for _, whole in runs)
            largest = max(largest, part)
            row += [f"{whole:.2f}", f"{part:.1%}"]
        rows.append(row)
        print(" ".join(row), file=sys.stderr, flush=True)
    print(markdown("model | `none`, s | checks | `smartmem`, s | checks", rows))
    return int(largest > MOST)


if __name__ == "__main__":
    sys.exit(main())
