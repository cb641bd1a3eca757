"""Simplifies models with one tool, in a process of its own; `bench/simplify.py` starts it.

    python bench/simplify_worker.py TOOL     # pairs of paths on stdin, IN and OUT separated by a tab; JSON lines out

The Python that runs it needs the tool and nothing else: `smartmem`, `onnxsim` or `onnxslim`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def by_smartmem() -> Callable[[str, str], dict[str, Any]]:
    from smartmem_rules.simplification.options import Options
    from smartmem_rules.simplification.simplify import simplify_file

    def run(source: str, target: str) -> dict[str, Any]:
        report = simplify_file(Path(source), Path(target), Options())
        return {"changed": report.changed, "differed": report.differed, "reason": report.reason}

    return run


def by_onnxsim() -> Callable[[str, str], dict[str, Any]]:
    import onnx
    import onnxsim

    def run(source: str, target: str) -> dict[str, Any]:
        model, _ = onnxsim.simplify(source)
        large = model.ByteSize() > 1_800_000_000
        onnx.save(model, target, save_as_external_data=large, location=f"{Path(target).name}.data")
        return {}

    return run


def by_onnxslim() -> Callable[[str, str], dict[str, Any]]:
    import onnxslim

    def run(source: str, target: str) -> dict[str, Any]:
        onnxslim.slim(source, target)
        return {}

    return run


def most_kilobytes() -> int:
    """The most memory that this process has held; `getrusage` counts that of the process that started it as well."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


TOOLS = {"smartmem": by_smartmem, "onnxsim": by_onnxsim, "onnxslim": by_onnxslim}


def main() -> None:
    simplify = TOOLS[sys.argv[1]]()
    for line in sys.stdin:
        source, target = line.rstrip("\n").split("\t")
        began = time.perf_counter()
        try:
            said = simplify(source, target)
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        said["seconds"] = time.perf_counter() - began
        said["kilobytes"] = most_kilobytes()
        print("\n" + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
