"""The README's tables: measures models and prints markdown, or puts it into a file between its marks.

`python bench/tables.py` measures the six models at levels none and smartmem, `--levels` Swin-T at every level;
`--write README.md` replaces what stands between `<!-- table: models -->` (or `levels`) and `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from markdown_tables import markdown, replace_table
from networks import FOLDER

from smartmem_rules import OptimizedPlan, optimize
from smartmem_rules.runtime.benchmarks import Contender, interleaved
from smartmem_rules.runtime.reference import NoReferenceError, open_reference

MODELS = ("swin_tiny", "vit_base", "convnext_tiny", "resnet50", "bert_base", "mobilenetv2")
LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")
LEVELS_HEADER = "level | kernels | kernels that only move data | MB moved | ms | relative error"
HEADER = (
    "model | operators | kernels | layout operators before / after | optimize s | none ms | smartmem ms | speed-up | "
    "ONNX Runtime ms (CPU) | relative error none / smartmem"
)


def main() -> int:
    """Measure, then print or write."""
    arguments = parse(sys.argv[1:])
    if arguments.levels:
        name, text = "levels", markdown(LEVELS_HEADER, measure_levels(FOLDER / f"{MODELS[0]}.onnx", arguments))
    else:
        models = [FOLDER / f"{name}.onnx" for name in arguments.models or MODELS]
        name, text = "models", markdown(HEADER, [measure(model, arguments) for model in models])
    if arguments.write is None:
        print(text)
    else:
        replace_table(arguments.write, name, text)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of examples/models; all six by default")
    parser.add_argument("--levels", action="store_true", help="the share of each step, on Swin-T")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--memory", default="auto")
    parser.add_argument("--write", type=Path, help="the file whose table is replaced")
    return parser.parse_args(arguments)


def measure(model: Path, arguments: argparse.Namespace) -> list[str]:
    """One row."""
    how: dict[str, Any] = {key: getattr(arguments, key) for key in ("device", "dtype", "memory")}
    print(model.stem, file=sys.stderr)
    plans = {level: optimize(model, level=level, **how) for level in ("none", "smartmem")}
    checks = [plan.check_or_reason() for plan in plans.values()]
    contenders = [of_plan(level, plan) for level, plan in plans.items()]
    feeds = plans["none"].random_feeds()
    try:
        reference = open_reference(model, ("onnxruntime",))
        contenders.append(Contender(name="onnxruntime", run=lambda: reference.run(feeds), kernels=None, device="CPU"))
    except NoReferenceError as error:
        print(error, file=sys.stderr)
    times = [row["median_ms"] for row in interleaved(contenders, arguments.runs)]
    data = plans["smartmem"].report_data()
    layout = data["layout_operators"]
    optimizing = data["seconds"]["total"] - data["seconds"]["build"]
    errors = ["-" if c.max_relative_error is None else f"{c.max_relative_error:.1e}" for c in checks]
    return [
        model.stem,
        str(data["operators"]),
        str(data["kernels"]),
        f"{layout['before']} / {layout['after']}",
        f"{optimizing:.1f}",
        *(f"{time:.1f}" for time in times[:2]),
        f"{times[0] / times[1]:.1f}x",
        f"{times[2]:.1f}" if len(times) > 2 else "-",
        " / ".join(errors),
    ]


def measure_levels(model: Path, arguments: argparse.Namespace) -> list[list[str]]:
    """One row for each level."""
    how: dict[str, Any] = {key: getattr(arguments, key) for key in ("device", "dtype", "memory")}
    plans = {level: optimize(model, level=level, **how) for level in LEVELS}
    checks = [plan.check_or_reason().max_relative_error for plan in plans.values()]
    times = interleaved([of_plan(level, plan) for level, plan in plans.items()], arguments.runs)
    rows = []
    for (level, plan), error, time in zip(plans.items(), checks, times, strict=True):
        data = plan.report_data()
        moved = f"{data['bytes_moved'] / 1e6:.0f}"
        shown = "-" if error is None else f"{error:.1e}"
        after = str(data["layout_operators"]["after"])
        rows.append([level, str(data["kernels"]), after, moved, f"{time['median_ms']:.1f}", shown])
    return rows


def of_plan(level: str, plan: OptimizedPlan) -> Contender:
    """A plan to measure."""
    feeds = plan.random_feeds()
    return Contender(
        name=level, run=lambda: plan.run(feeds), kernels=len(plan.kernels), device=plan.prepare().device.name
    )


if __name__ == "__main__":
    sys.exit(main())
