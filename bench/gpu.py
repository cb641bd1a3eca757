"""The table of a GPU in docs/results.md: levels, memories and element types of each model, in turns on one device.

`python bench/gpu.py --device NVIDIA --write docs/results.md` measures. A time is that of a whole
inference, with its inputs from and its outputs to the host. `--without NAME` (a rule, a `fuse` block, a schedule)
prints level smartmem beside itself without it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from markdown_tables import markdown, replace_table
from networks import FOLDER
from tables import of_plan

from smartmem_rules import OptimizedPlan, optimize
from smartmem_rules.runtime.benchmarks import interleaved

MODELS = (
    "swin_tiny", "vit_base", "convnext_tiny", "resnet50", "mobilenetv2", "cswin_tiny", "autoformer_s3",
    "efficientvit_b3",
)  # fmt: skip
VARIANTS = (
    ("smartmem", "buffer", "float32"),
    ("smartmem", "image", "float32"),
    ("smartmem", "buffer", "float16"),
    ("dnnfusion", "buffer", "float32"),
)
HEADER = "model | kernels smartmem / dnnfusion | buffers ms | images ms | float16 ms | dnnfusion ms | speed-up | error"
WITHOUT = "model | kernels with / without | with ms | without ms | without over with | error with / without"


def main() -> int:
    """Measure, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), help="names of examples/models")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--without", metavar="NAME", help="what `optimize` calls `disable`")
    parser.add_argument("--write", type=Path, help="the file whose table `gpu` is replaced")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        model = FOLDER / f"{name}.onnx"
        if arguments.without:
            rows.append(measure_without(model, arguments.without, arguments.device, arguments.runs))
        else:
            rows.append(measure(model, arguments.device, arguments.runs))
        print(rows[-1], file=sys.stderr, flush=True)
    table = markdown(WITHOUT if arguments.without else HEADER, rows)
    if arguments.write is None:
        print(table)
    else:
        replace_table(arguments.write, "gpu", table)
    return 0


def measure(model: Path, device: str, runs: int) -> list[str]:
    """One row."""
    plans: dict[tuple[str, str, str], OptimizedPlan] = {
        (level, memory, dtype): optimize(model, device=device, level=level, memory=memory, dtype=dtype)
        for level, memory, dtype in VARIANTS
    }
    contenders = [of_plan(" ".join(variant), plan) for variant, plan in plans.items()]
    times = [row["median_ms"] for row in interleaved(contenders, runs)]
    buffers, images, halves, before = times
    ours, theirs = plans[VARIANTS[0]], plans[VARIANTS[3]]
    error = ours.check_or_reason().max_relative_error
    return [
        model.stem,
        f"{len(ours.kernels)} / {len(theirs.kernels)}",
        *(f"{time:.2f}" for time in (buffers, images, halves, before)),
        f"{before / buffers:.1f}x",
        "-" if error is None else f"{error:.1e}",
    ]


def measure_without(model: Path, name: str, device: str, runs: int) -> list[str]:
    """One row: all of level smartmem, and all but what has this name."""
    plans = [optimize(model, device=device, disable=disable) for disable in ((), (name,))]
    contenders = [of_plan(word, plan) for word, plan in zip(("with", "without"), plans, strict=True)]
    own, other = (row["median_ms"] for row in interleaved(contenders, runs))
    errors = [plan.check_or_reason().max_relative_error for plan in plans]
    counts = " / ".join(str(len(plan.kernels)) for plan in plans)
    shown = " / ".join("-" if error is None else f"{error:.1e}" for error in errors)
    return [model.stem, counts, f"{own:.2f}", f"{other:.2f}", f"{other / own:.2f}", shown]


if __name__ == "__main__":
    sys.exit(main())
