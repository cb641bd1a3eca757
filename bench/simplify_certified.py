"""What onnxsim's certifier says of our simplified models: proved, skipped or refuted, for each model.

    python -m venv peers && peers/bin/pip install "onnxsim[verify]" onnxruntime
    peers/bin/python bench/simplify_certified.py in/ out/          # pairs of files of the same names

It needs no Python package of this project, so that the judge runs apart from what is judged.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import onnx


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", type=Path, help="folder of the models")
    parser.add_argument("results", type=Path, help="folder of the simplified ones")
    parser.add_argument("--seconds", type=float, default=20.0, help="for one model")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from onnxsim.certify import certify

    found: dict[str, dict[str, str]] = {}
    for result in sorted(given.results.glob("*.onnx")):
        source = given.inputs / result.name
        if not source.exists():
            continue
        budget = int(1000 * given.seconds)
        try:
            report = certify(onnx.load(source), onnx.load(result), timeout_ms=budget, total_timeout_ms=budget)
            found[result.stem] = {name: str(status) for name, status in report.outputs.items()}
        except Exception as error:
            found[result.stem] = {"": f"no verdict: {type(error).__name__}: {error}"[:200]}
        print(result.stem, found[result.stem], flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(dict(Counter(status.split(":")[0] for outputs in found.values() for status in outputs.values())))


if __name__ == "__main__":
    main()
