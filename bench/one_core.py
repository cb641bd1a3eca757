"""Ours beside ONNX Runtime and OpenVINO on one core: `python bench/one_core.py mobilenetv2 resnet50`, names or paths.

Each system has one thread in a process of its own; they take turns, and what counts is the time of the processor, which
other work on the machine disturbs less than the clock. `--avx2` makes the machine one with AVX2: ours by
SMARTMEM_PROCESSOR, OpenVINO by ONEDNN_MAX_CPU_ISA. ONNX Runtime has no such variable; `--onnxruntime FOLDER` imports
another build of it from there.
"""

from __future__ import annotations

import argparse
import os
import sys

from markdown_tables import markdown
from served import HEADER, NAMES, RUNS, add_processor, mean_row, medians, model_file, processor, row


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--turns", type=int, default=6)
    add_processor(parser)
    arguments = parser.parse_args()
    environments = processor(arguments)
    for name in NAMES:
        environments[name]["POCL_MAX_PTHREAD_COUNT" if name == "ours" else "OMP_NUM_THREADS"] = "1"
    found = [medians(model_file(name), 1, arguments.turns, environments) for name in arguments.models]
    rows = [row(name, times) for name, times in zip(arguments.models, found, strict=True)]
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, medians of {RUNS * arguments.turns} runs or more\n")
    print(markdown(HEADER, [*rows, mean_row(found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
