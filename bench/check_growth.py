"""How the time to check rules grows with their number: `python bench/check_growth.py`.

Prints the processor's seconds of one `check` of a generated file, at sizes that double, and the ratio of each to the
one before: 2 is linear growth. The rules are made by `--kind`: `sound` ones of many shapes, `unproved`
ones (operand types are tried where none are proved), `alike` (the same roots
on both sides, so that each might take back or cover any other), `wrong` (one message for each), `broken` (one
syntax error for each), `operators` (definitions), `families`. `--profile` adds what cProfile says of the largest size.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

UNARY = ("Relu", "Neg", "Abs", "Exp", "Sqrt", "Tanh", "Sigmoid", "Floor", "Ceil", "Erf")
BINARY = ("Add", "Mul", "Sub", "Div")
KINDS = ("sound", "unproved", "alike", "wrong", "broken", "operators", "families")


def pattern(source: random.Random, depth: int) -> str:
    """A pattern over x, y and z."""
    if depth == 0:
        return source.choice(["x", "y", "z", str(source.randint(2, 10**6))])
    if source.random() < 0.4:
        return f"{source.choice(UNARY)}({pattern(source, depth - 1)})"
    return f"{source.choice(BINARY)}({pattern(source, depth - 1)}, {pattern(source, depth - 1)})"


def rule(kind: str, number: int, source: random.Random) -> str:
    """The text of one rule or definition."""
    if kind == "operators":
        head = f"operator Own{number}<T: float>(x: T[*S], y: T[*S]) -> z: T[*S] {{\n    onnx my.ops::Own{number};\n"
        return f"{head}    z[*i] = exp(x[*i]) * {number} + y[*i] * {source.randint(2, 99)}\n}}\n\n"
    if kind == "families":
        head = f"for Op in {', '.join(source.sample(UNARY, 4))} {{\n    rewrite family_{number} in algebra\n"
        return f"{head}        Op(Mul(x, {number + 2})) => Mul(Op(x), {number + 2})\n        explores\n}}\n\n"
    if kind == "alike":
        left = f"Mul(Add(x, {number + 2}), y)"
        right = f"Add(Mul(x, y), {number + 3})"
        left, right = (left, right) if number % 2 else (right, left)
    elif kind == "unproved":
        left, right = f"Add({pattern(source, 3)}, Mul(x, {number + 2}))", f"Mul(Relu(x), {number + 3})"
    else:
        made = pattern(source, 3)
        left, right = f"Sub({made}, Mul(x, {number + 2}))", f"Add({made}, Mul(x, -{number + 2}))"
    if kind == "wrong":
        right = f"Rellu{number}(x)"
    arrow = "->" if kind == "broken" else "=>"
    head = f"rewrite made_{number} in algebra\n    {left} {arrow} {right}\n"
    return f"{head}    where rank(x) > {number % 5}\n    explores\n\n"


def check_seconds(file: Path) -> tuple[float, int, int]:
    """Processor seconds of a check in a process of its own, its messages, and its largest memory in MiB."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SMARTMEM_CACHE": "off"}
    told = subprocess.run(
        [sys.executable, __file__, "--one", file], env=environment, check=True, capture_output=True, text=True
    )
    seconds, messages, memory = told.stdout.split()
    return float(seconds), int(messages), int(memory) // 1024


def _one(file: Path) -> None:
    import resource  # not on all systems

    from smartmem_rules.rulebase.checking import check_files  # what the start takes is not measured

    check_files([])
    began = time.process_time()
    found, _ = check_files([file])
    print(time.process_time() - began, len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _profile(file: Path) -> None:
    from smartmem_rules.rulebase.checking import check_files  # what the start takes is not measured

    profile = cProfile.Profile()
    profile.runcall(check_files, [file])
    pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


def main() -> None:
    """Measure, or with --one check a file in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=KINDS, help="what is generated; all kinds by default")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8750, 17500, 35000, 70000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        _one(chosen.one)
        return
    print("| rules | number | MB | messages | seconds | ratio | MiB |\n|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in chosen.kind or KINDS:
            before = 0.0
            for size in chosen.sizes:
                file = Path(folder) / f"{kind}_{size}.smr"
                source = random.Random(chosen.seed)
                file.write_text("".join(rule(kind, number, source) for number in range(size)))
                seconds, messages, memory = check_seconds(file)
                ratio = f"{seconds / before:.2f}" if before else ""
                megabytes = file.stat().st_size / 1e6
                row = (kind, size, f"{megabytes:.1f}", messages, f"{seconds:.1f}", ratio, memory)
                print(f"| {' | '.join(map(str, row))} |", flush=True)
                before = seconds
            if chosen.profile:
                _profile(file)


if __name__ == "__main__":
    main()
