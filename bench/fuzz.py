"""Judges generated models: wrong answers, errors that are not ours, processes that end, and hangs.

    python bench/fuzz.py --count 200                        drawn models, over all operators, levels and memories
    python bench/fuzz.py --models build/nnsmith             the models of a folder (bench/nnsmith_models.py makes some)
    python bench/fuzz.py --replay build/fuzz/drawn-29.onnx  a kept failure again
    python bench/fuzz.py --count 10000 --scheduler tcp://HOST:8786

Every model runs in a worker process (`smartmem_rules.fuzzing.campaigns.worker`) and is compared, element by element,
with its value in double precision and the spread of runs in which every rounding is a random one
(`smartmem_rules.fuzzing.expected.outputs`).  A failure is made small and kept in a folder as .onnx, .npz (its inputs)
and .json (level, memory, element type, device, seed, and what is wrong).  The exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from smartmem_rules.fuzzing.campaigns.campaign import (
    Summary,
    answers_by_dask,
    answers_here,
    drawn_requests,
    file_requests,
    run,
)
from smartmem_rules.fuzzing.case import load_case
from smartmem_rules.fuzzing.judge import judge
from smartmem_rules.fuzzing.sources.by_name import SOURCES
from smartmem_rules.runtime.devices import DeviceError, devices

BEGIN, END = "<!-- fuzz {} -->\n", "<!-- end -->"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="generated models against a reference")
    parser.add_argument("--source", choices=sorted(SOURCES), default="drawn", help="where models come from")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; the others follow")
    parser.add_argument("--models", type=Path, help="a folder of .onnx files, with inputs by name beside them (.npz)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="processes")
    parser.add_argument("--scheduler", help="the address of a Dask scheduler whose workers judge the models")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where failures go")
    parser.add_argument("--no-reduce", action="store_true", help="only name the failures")
    parser.add_argument("--replay", type=Path, nargs="+", help="kept cases to try again, in this process")
    parser.add_argument("--json", type=Path, help="write the summary as data")
    parser.add_argument("--write", type=Path, help="put the summary into a document, between its marks for the source")
    return parser.parse_args()


def replay(paths: list[Path]) -> int:
    """Judge kept cases in this process, for a debugger."""
    failed = 0
    for path in paths:
        case = load_case(path)
        verdict = judge(case)
        failed += verdict.failed
        print(f"{path.name} ({case.mode}): {verdict.kind}\n{verdict.detail}".strip())
    return int(failed > 0)


def told(summary: Summary) -> None:
    if sys.stderr.isatty():
        print(f"\r{summary.total} models: {dict(summary.verdicts)}", end="", file=sys.stderr, flush=True)


def tree() -> str:
    """The commit whose tree is judged, with a word where files of it are changed."""
    git = ["git", "-C", str(Path(__file__).resolve().parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return f"tree {commit.stdout.strip()}" + (" with changes" if changed.stdout else "")


def table(summary: Summary, title: str, command: str) -> str:
    """The summary for a document."""
    date = datetime.date.today().isoformat()
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary.verdicts.most_common())
    lines = [
        f"**{title}**, {date}, {tree()}: {summary.total} models, {len(summary.operators)} operators, "
        f"{summary.processor_seconds / max(1, summary.total):.2f} s of processor time each: {kinds}.",
        "",
        f"`{command}`",
        "",
    ]
    if summary.refusals:
        lines += ["| refused, with what message | models |", "|---|---:|"]
        lines += [f"| {line.replace('|', '/')} | {n} |" for line, n in summary.refusals.most_common(8)]
        lines.append("")
    if summary.failures:
        lines += ["| failure | mode | seed |", "|---|---|---|"]
        lines += [
            f"| {f.verdict.kind}: {f.verdict.detail.splitlines()[-1][:90]} | {f.mode} | {f.request.get('seed')} |"
            for f in summary.failures
        ]
        lines.append("")
    return "\n".join(lines)


def write(path: Path, name: str, text: str) -> None:
    """Put text between the marks of its name."""
    document = path.read_text()
    begin = document.index(BEGIN.format(name)) + len(BEGIN.format(name))
    end = document.index(END, begin)
    path.write_text(document[:begin] + text + document[end:])


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = parsed()
    if arguments.replay:
        return replay(arguments.replay)
    if arguments.models:
        requests = file_requests(arguments.models, arguments.seed, arguments.count)
    else:
        requests = drawn_requests(arguments.source, arguments.seed, arguments.count)
    if arguments.scheduler:
        answers = answers_by_dask(requests, arguments.scheduler)
    else:
        try:
            devices()  # without a device each model would be an error, after minutes of drawing
        except DeviceError as error:
            print(error, file=sys.stderr)
            return 2
        answers = answers_here(requests, arguments.jobs)
    until = time.monotonic() + arguments.seconds
    summary = run(answers, None if arguments.no_reduce else arguments.keep, told, until)
    for failure in summary.failures:
        print(f"{failure.verdict.kind} {failure.request} {failure.mode} {failure.kept}\n  {failure.verdict.detail}")
    ended = ", interrupted" if summary.interrupted else ""
    print(f"{summary.total} models in {summary.wall_seconds:.0f} s{ended}: {dict(summary.verdicts)}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(summary.data(), indent=1) + "\n")
    if arguments.write:
        name = "nnsmith" if arguments.models else arguments.source
        first = arguments.seed
        kind = "NNSmith's" if arguments.models else arguments.source.capitalize()
        title = f"{kind} models, seeds {first} to {first + summary.total - 1}"
        write(arguments.write, name, table(summary, title, " ".join(["python", *sys.argv])))
    return 130 if summary.interrupted else int(bool(summary.failures))


if __name__ == "__main__":
    sys.exit(main())
