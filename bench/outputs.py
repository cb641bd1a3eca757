"""Outputs at every level, in images and in buffers, against ONNX Runtime.

`python bench/outputs.py` optimizes and runs all models (`--models NAME ...` some) at all levels, once with tensors in
buffers and once in images, and prints the largest relative error of each. Each run is a process of its own, which may
take `--seconds`; `--save FILE` keeps the results as JSON lines, and takes them from there again. The exit code is 1
where outputs are wrong or missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from figures import LEVELS
from markdown_tables import markdown
from networks import named, path

MEMORIES = ("buffer", "image")


def error(name: str, level: str, memory: str, arguments: argparse.Namespace) -> str:
    """The error of one plan's outputs as a word of the table; `wrong` or `failed` with what was said."""
    command = [sys.executable, "-m", "smartmem_rules.cli", "optimize", str(path(name)), "--json"]
    command += ["--level", level, "--memory", memory, "--dtype", arguments.dtype, "--seed", str(arguments.seed)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        return f"failed: more than {arguments.seconds} s"
    try:
        check = json.loads(ran.stdout)["check"]
    except (json.JSONDecodeError, KeyError):
        return f"failed: {(ran.stderr.strip().splitlines() or ['no output'])[-1]}"
    return f"{'' if check['passed'] else 'wrong: '}{check['max_relative_error']:.1e}"


def main() -> int:
    """Run, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--levels", nargs="*", default=LEVELS, choices=LEVELS)
    parser.add_argument("--memories", nargs="*", default=MEMORIES, choices=MEMORIES)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    known: dict[str, str] = {}
    if arguments.save is not None and arguments.save.exists():
        known = dict(map(json.loads, arguments.save.read_text().splitlines()))
    columns = [(level, memory) for level in arguments.levels for memory in arguments.memories]
    rows = []
    for name in named(arguments.models):
        row = [name]
        for level, memory in columns:
            key = " ".join((name, level, memory, arguments.dtype, str(arguments.seed)))
            if key not in known:
                print(key, file=sys.stderr, flush=True)
                known[key] = error(name, level, memory, arguments)
                if arguments.save is not None:
                    with arguments.save.open("a") as out:
                        out.write(json.dumps([key, known[key]]) + "\n")
            row.append(known[key])
        rows.append(row)
    print(markdown(" | ".join(["model", *(f"{level}, {memory}" for level, memory in columns)]), rows))
    wrong = sum(word.startswith(("wrong", "failed")) for row in rows for word in row[1:])
    print(f"\n{len(rows) * len(columns) - wrong} of {len(rows) * len(columns)} agree with the reference")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
