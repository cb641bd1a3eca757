"""docs/models.md: the paper's models run and compared with ONNX Runtime, stored as float32 and as float16.

`python bench/models.py --write docs/models.md` measures all of them (`NAME ...` some) and writes the page; what
`--json FILE` holds already is not measured again.  Every measurement runs in a process of its own, so that its peak
memory is its own: that of optimizing and of one inference, before ONNX Runtime is loaded.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
from own_process import in_own_process

from smartmem_rules.runtime.reference import TOLERANCES

DTYPES = tuple(TOLERANCES)
LIMIT = 0.9999
"""What the correlation of an output with the reference's must exceed."""


def main() -> int:
    """Measure, then print or write; 1 if a model fails."""
    from smartmem_rules.graph.zoo import NETWORKS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of `smartmem zoo`; by default the paper's")
    parser.add_argument("--dtype", choices=DTYPES, help="one of them; both by default")
    parser.add_argument("--json", type=Path, default=Path("build/models.json"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.models[0], arguments.dtype)))
        return 0
    rows: dict[str, dict[str, Any]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    for dtype in [arguments.dtype] if arguments.dtype else DTYPES:
        for name in arguments.models or NETWORKS:
            if f"{name} {dtype}" not in rows:
                rows[f"{name} {dtype}"] = in_own_process(__file__, "--one", name, "--dtype", dtype)
                print(name, dtype, rows[f"{name} {dtype}"], file=sys.stderr, flush=True)
                arguments.json.write_text(json.dumps(rows, indent=1))
    text = page(rows)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)
    return int(any(row["error"] or not row["passed"] for row in rows.values()))


def measure(name: str, dtype: str) -> dict[str, Any]:
    """Optimize, run and compare one model."""
    from smartmem_rules import optimize
    from smartmem_rules.graph.zoo import shipped_model
    from smartmem_rules.runtime.feeds import compare, worst
    from smartmem_rules.runtime.reference import open_reference

    path = shipped_model(name)
    plan = optimize(path, dtype=dtype)
    feeds = plan.random_feeds()
    results = plan.run(feeds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    data = plan.report_data()
    reference = open_reference(path)
    wanted = reference.run(feeds)
    error, _ = worst([compare(results[output], wanted[output]) for output in results])
    correlation = min(correlated(results[output], wanted[output]) for output in results)
    return {
        "operators": data["operators"],
        "kernels": data["kernels"],
        "layout": data["layout_operators"]["after"],
        "reference": reference.name,
        "error": None,
        "relative_error": error,
        "correlation": correlation,
        "peak_gib": peak,
        "passed": bool(error <= TOLERANCES[dtype] and correlation > LIMIT),
    }


def correlated(result: np.ndarray, reference: np.ndarray) -> float:
    """The correlation of what two outputs deviate from their means; 1 where neither varies."""
    got, wanted = (values.astype(np.float64).ravel() for values in (result, reference))
    got, wanted = got - got.mean(), wanted - wanted.mean()
    scale = float(np.linalg.norm(got) * np.linalg.norm(wanted))
    return float(got @ wanted) / scale if scale else float(not got.any() and not wanted.any())


def page(rows: dict[str, dict[str, Any]]) -> str:
    """The page as Markdown."""
    from smartmem_rules.graph.zoo import NETWORKS

    names = list(dict.fromkeys(key.split()[0] for key in rows))
    lines = [
        "# Models", "", "<!-- written by bench/models.py -->", "",
        "The models of SmartMem's table, from `smartmem zoo`: batch 1, random inputs, compared with ONNX Runtime.",
        "The error is max|a - b| / max|reference|, the correlation that of what the outputs deviate from their means",
        "(the least over the outputs); memory is the peak of optimizing and running in one process. AutoFormer is the",
        "tiny one of S3: 4.7 GMACs, as the paper's table says; the small one has 9.5.", "",
        "| model | network | operators | kernels | layout operators left | float32: error, correlation | GiB "
        "| float16: error, correlation | GiB |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for name in names:
        single = rows.get(f"{name} float32") or rows.get(f"{name} float16") or {}
        cells = [name, NETWORKS.get(name, ""), *(str(single.get(k, "-")) for k in ("operators", "kernels", "layout"))]
        for dtype in DTYPES:
            cells += _cells(rows.get(f"{name} {dtype}"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["not measured", ""]
    if row["error"]:
        return [row["error"], ""]
    return [f"{row['relative_error']:.1e}, {row['correlation']:.6f}", f"{row['peak_gib']:.1f}"]


if __name__ == "__main__":
    sys.exit(main())
