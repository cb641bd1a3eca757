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
from served import HEADER, RUNS, mean_row, medians, model_file, row


def main() -> int:
    """Measure each model, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--onnxruntime", default="", help="a folder that holds the package onnxruntime")
    arguments = parser.parse_args()
    environments = {name: {"OMP_NUM_THREADS": "1"} for name in ("onnxruntime", "openvino")}
    environments["ours"] = {"POCL_MAX_PTHREAD_COUNT": "1"}
    if arguments.avx2:
        environments["ours"]["SMARTMEM_PROCESSOR"] = "x86-64-v3"
        environments["openvino"]["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    if arguments.onnxruntime:
        packages = arguments.onnxruntime + os.pathsep + os.environ.get("PYTHONPATH", "")
        environments["onnxruntime"]["PYTHONPATH"] = packages
    found = [medians(model_file(name), 1, arguments.turns, environments) for name in arguments.models]
    rows = [row(name, times) for name, times in zip(arguments.models, found, strict=True)]
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, medians of {RUNS * arguments.turns} runs\n")
    print(markdown(HEADER, [*rows, mean_row(found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
