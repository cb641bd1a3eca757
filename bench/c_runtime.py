"""The C runtime beside Python's executor: equal to the byte, size, cold start, time of a run, peak memory.

`python bench/c_runtime.py` exports the paper's models (`NAME ...` some; `dynamic/NAME` for ranges of dimensions), in
buffers for PoCL and in images for `adreno_740`, builds each program, runs it and Python on the same inputs, and prints
a table, with the load that this computer had; `--write docs/c_runtime.md` puts it there. What `--json FILE` holds
already is not measured again. Exit code 1 if outputs differ. Every measurement runs in processes of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dynamic import CASES
from markdown_tables import markdown, replace_table
from networks import PAPER, named, path
from own_process import in_own_process

from smartmem_rules import OptimizedPlan, optimize
from smartmem_rules.bundle import write_bundle
from smartmem_rules.resources import models_path
from tests.runtime.c.library import call, installed, open_plan, opencl_environment

RUNS = 100
MOST_SECONDS = 5.0
"""Of the timed runs of a round, of which there are three at least."""
ROUNDS = 3
"""Of C and of Python, in turn: what else this computer does is then the same for both, and the fastest runs count."""
FLOOR = Path(__file__).with_name("opencl_floor.c")
KINDS = {"buffers": "pocl", "images": "adreno_740"}
RANGES = tuple(f"dynamic/{name}" for name in CASES)
TABLE = "c_runtime"


@dataclass(frozen=True, kw_only=True)
class Process:
    """What a program printed, and what it took.

    Attributes:
        seconds: from its start to the first line that it prints, which says that there is an output.
        peak: MiB of memory.
    """

    printed: str
    seconds: float
    peak: float


@dataclass(frozen=True, kw_only=True)
class Program:
    """An exported program.

    Attributes:
        folder: of its inputs, outputs and compiled kernels.
    """

    path: Path
    folder: Path


def main() -> int:
    """Measure, then print or write; 1 if outputs differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="by default the paper's, and three with ranges of dimensions")
    parser.add_argument("--kind", choices=KINDS, help="one of them; both by default")
    parser.add_argument("--json", type=Path, default=Path("build/c_runtime.json"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--binaries", action="store_true", help="export with programs as the driver compiles them")
    parser.add_argument(
        "--self-test", action="store_true", help="only how long the kernels are asked, and what is found"
    )
    parser.add_argument(
        "--recorded", action="store_true", help="only runs that replay recorded launches beside others, in turn"
    )
    parser.add_argument("--turns", action="store_true", help="only runs of C and of Python in one process, in turn")
    parser.add_argument("--floor", action="store_true", help="only what the driver itself takes")
    parser.add_argument("--memory", action="store_true", help="only what the memory of a process consists of")
    parser.add_argument("--equal", action="store_true", help="only whether outputs are equal: nothing is timed")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.models[0], arguments.kind, arguments.binaries, arguments.equal)))
        return 0
    if arguments.self_test:
        print("\n".join(map(self_test, arguments.models)))
        return 0
    if arguments.recorded:
        print("\n".join(map(recorded, arguments.models)))
        return 0
    if arguments.turns:
        print("\n".join(map(turns, arguments.models)))
        return 0
    if arguments.floor:
        print(floor())
        return 0
    if arguments.memory:
        print("\n".join(map(memory, arguments.models)))
        return 0
    rows: dict[str, dict[str, Any]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    own = [*(["--binaries"] if arguments.binaries else []), *(["--equal"] if arguments.equal else [])]
    for kind in [arguments.kind] if arguments.kind else KINDS:
        for name in arguments.models or [*named(list(PAPER)), *RANGES]:
            if f"{name} {kind}" not in rows and not (kind == "images" and name in RANGES):
                rows[f"{name} {kind}"] = in_own_process(__file__, "--one", name, "--kind", kind, *own)
                print(name, kind, rows[f"{name} {kind}"], file=sys.stderr, flush=True)
                arguments.json.write_text(json.dumps(rows, indent=1))
    text = table(rows)
    if arguments.write:
        replace_table(arguments.write, TABLE, text)
    else:
        print(text)
    return int(any(row["error"] or not row["equal"] for row in rows.values()))


def measure(name: str, kind: str, binaries: bool = False, only_equal: bool = False) -> dict[str, Any]:
    """Export, build, run and compare one model."""
    case = CASES[name.partition("/")[2]] if name in RANGES else None
    model = models_path() / f"{name}.onnx" if case else path(name)
    plan = optimize(model, device=KINDS[kind], dims=case.dims if case else None)
    feeds = [plan.random_feeds(0, {case.dimension: extent} if case else None) for extent in _extents(case)]
    with tempfile.TemporaryDirectory() as temporary:
        program = Program(path=_built(plan, Path(temporary) / "bundle", binaries), folder=Path(temporary))
        row = {
            "error": None,
            "equal": all(_equal(program, plan, inputs) for inputs in feeds),
            "extents": len(feeds),
            "launches": len(plan.kernels),
        }
        # a CPU stands in for the device of the images: times of it mean nothing
        return row if only_equal or kind == "images" else {**row, **_times(program, plan, feeds[-1])}


def _equal(program: Program, plan: OptimizedPlan, inputs: dict[str, Any]) -> bool:
    """Whether a run of the program gives the bytes that Python gives."""
    _started(program, inputs, 1)
    expected = enumerate(plan.run(inputs).values())
    return all(np.load(program.folder / f"{number}.npy").tobytes() == array.tobytes() for number, array in expected)


def _times(program: Program, plan: OptimizedPlan, inputs: dict[str, Any]) -> dict[str, Any]:
    """What a run takes, once everything is compiled."""
    cold = [_started(program, inputs, 1) for _ in range(ROUNDS)]
    runs = max(3, min(RUNS, int(MOST_SECONDS * 1e3 / plan.prepare().timed_run(inputs))))
    own: list[float] = []
    python: list[float] = []
    for _ in range(ROUNDS):
        warm = _started(program, inputs, runs + 1)
        own += [float(line.split()[0]) for line in warm.printed.splitlines() if line.endswith(" ms")][1:]
        python += [plan.prepare().timed_run(inputs) for _ in range(runs)]
    return {
        "cold_seconds": min(one.seconds for one in cold),
        "c_ms": min(own),
        "python_ms": min(python),
        "peak": max(one.peak for one in cold),
        "planned": plan.prepare().device_bytes / 2**20,
        "load": os.getloadavg()[0],
    }


def _extents(case: Any) -> tuple[int, ...]:
    return case.extents if case else (0,)


def _built(plan: OptimizedPlan, folder: Path, binaries: bool = False) -> Path:
    """The exported program, linked with the library as it is installed."""
    write_bundle([plan], folder, binaries=binaries)
    library = installed()
    compiler = shutil.which("cc") or "gcc"
    sources = [folder / "main.c", folder / "npy.c"]
    link = ["-L", library / "lib", "-lsmartmem", f"-Wl,-rpath,{library / 'lib'}"]
    command = [compiler, "-std=c11", "-O2", "-I", library / "include", *sources, *link, "-o", folder / "run"]
    subprocess.run(list(map(str, command)), check=True)
    return folder / "run"


def _started(
    program: Program, feeds: dict[str, Any], repeat: int, look: Callable[[int], None] = lambda process: None
) -> Process:
    """Run a program; `look` is called with the number of its process again and again."""
    folder = program.folder
    arguments = []
    for number, (name, array) in enumerate(feeds.items()):
        file = folder / f"in{number}.npy"
        np.save(file, array)
        arguments.append(f"{name}={file}")
    command = ["./run", "-o", str(folder), "--cache", str(folder / "cache"), "--repeat", str(repeat), *arguments]
    environment = {**os.environ, **opencl_environment()}
    with open(folder / "printed", "w+") as printed:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=program.path.parent, env=environment, stdout=printed)
        peak, seconds = 0.0, 0.0
        while process.poll() is None:
            peak = max(peak, _peak(process.pid))
            look(process.pid)
            if not seconds and os.fstat(printed.fileno()).st_size:
                seconds = time.perf_counter() - start
            time.sleep(0.001)
        seconds = seconds or time.perf_counter() - start
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise RuntimeError(f"the program of {folder} ended with status {process.returncode}: {text}")
    return Process(printed=text, seconds=seconds, peak=peak)


def self_test(name: str) -> str:
    """What the library says of a model's kernels on this device, and what asking them adds to opening the plan."""
    plan = optimize(path(name), probes=True)
    seconds: dict[int, list[float]] = {-1: [], 1: []}
    with tempfile.TemporaryDirectory() as temporary:
        plan.save(Path(temporary) / "a.plan")
        for asks in (-1, 1) * ROUNDS:
            start = time.perf_counter()
            with open_plan(Path(temporary) / "a.plan", cache_folder=Path(temporary), self_test=asks) as opened:
                found = opened.self_test
            seconds[asks].append(time.perf_counter() - start)
    kernels = len({probe.launches for probe in plan.plan.probes})
    return f"{name}: {kernels} kernels, {min(seconds[1]) - min(seconds[-1]):.2f} s; {found or 'all right'}"


def recorded(name: str) -> str:
    """The milliseconds of runs of two sessions in turn, of which one may record; and whether both agree."""
    plan = optimize(path(name))
    feeds = plan.random_feeds(0)
    seconds: dict[int, list[float]] = {-1: [], 0: []}
    with tempfile.TemporaryDirectory() as temporary:
        plan.save(Path(temporary) / "a.plan")
        with (
            open_plan(Path(temporary) / "a.plan") as opened,
            opened.session(record=-1) as plain,
            opened.session() as own,
        ):
            kept = {-1: plain.set_inputs(feeds), 0: own.set_inputs(feeds)}
            for number in range(RUNS):
                for how, session in ((-1, plain), (0, own)):
                    start = time.perf_counter()
                    call("run", session.id)
                    if number > 1:  # the first one loads the kernels, the second one records
                        seconds[how].append(time.perf_counter() - start)
            results = [list(session.outputs().values()) for session in (plain, own)]
            del kept
    same = all(a.tobytes() == b.tobytes() for a, b in zip(*results, strict=True))
    device = plan.prepare().device.name
    times = [f"{min(one) * 1e3:.2f} ({np.median(one) * 1e3:.2f})" for one in seconds.values()]
    return (
        f"{name}, {device}: {len(plan.kernels)} launches; one by one {times[0]}, recorded {times[1]} ms at "
        f"least (median); {'equal to the byte' if same else 'DIFFERENT'}"
    )


def turns(name: str) -> str:
    """The milliseconds of runs of C and of Python, one after the other: what else runs here disturbs both alike."""
    plan = optimize(path(name))
    feeds = plan.random_feeds(0)
    executor = plan.prepare()
    seconds: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        plan.save(Path(temporary) / "a.plan")
        with open_plan(Path(temporary) / "a.plan") as opened, opened.session() as session:
            kept = session.set_inputs(feeds)
            for _ in range(10 * RUNS):
                start = time.perf_counter()
                call("run", session.id)
                middle = time.perf_counter()
                executor.run(feeds)
                seconds.append((middle - start, time.perf_counter() - middle))
            del kept
    both = np.array(seconds[2:]) * 1e3  # the first ones load the kernels
    (c, python), ratio = both.min(axis=0), np.median(both[:, 0] / both[:, 1])
    return f"{name}: C {c:.2f}, Python {python:.2f} ms at least, {c / python:.2f}; median of C / Python {ratio:.2f}"


def floor() -> str:
    """What the driver takes of a program that opens a device and builds a kernel, which was compiled before."""
    sources = Path(__file__).resolve().parent.parent / "runtime" / "c"
    own = [sources / "src" / f"{name}.c" for name in ("opencl", "driver_pages", "status", "processor")]
    with tempfile.TemporaryDirectory() as temporary:
        program = Path(temporary) / "floor"
        folders = [f"-I{sources / name}" for name in ("src", "include", "nanopb")]
        command = [shutil.which("cc") or "gcc", "-std=gnu11", "-O2", *folders, FLOOR, *own, "-o", program]
        subprocess.run([*map(str, command), "-ldl", "-lpthread"], check=True)
        environment = {**os.environ, **opencl_environment(), "POCL_CACHE_DIR": temporary}
        for _ in range(2):  # the first time it compiles
            done = subprocess.run([program], env=environment, check=True, capture_output=True, text=True)
        return done.stdout.rstrip()


def memory(name: str) -> str:
    """What lies in the memory of a process that runs a plan when it has most, by what it belongs to, in MiB."""
    plan = optimize(path(name))
    feeds = plan.random_feeds(0)
    with tempfile.TemporaryDirectory() as temporary:
        program = Program(path=_built(plan, Path(temporary) / "bundle", binaries=True), folder=Path(temporary))
        _started(program, feeds, 1)  # what is compiled is there now
        seen: list[dict[str, float]] = []
        _started(program, feeds, RUNS, lambda process: seen.append(_parts(process)))
    parts = max(seen, key=lambda one: sum(one.values()))
    rows = [[part, f"{mebibytes:.1f}"] for part, mebibytes in sorted(parts.items(), key=lambda one: -one[1])]
    planned = plan.prepare().device_bytes / 2**20
    rows += [["all", f"{sum(parts.values()):.1f}"], ["planned: constants and one session", f"{planned:.1f}"]]
    return f"{markdown(f'{name} | MiB', rows)}\n"


def _parts(process: int) -> dict[str, float]:
    """MiB of a process's memory by what is mapped; nothing where it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps").read_text().splitlines()
    except OSError:
        return {}
    parts: dict[str, float] = {}
    part = ""
    for line in lines:
        words = line.split()
        if not words[0].endswith(":"):
            part = _part(Path(words[5]).name if len(words) > 5 else "")
        elif words[0] == "Rss:":
            parts[part] = parts.get(part, 0.0) + int(words[1]) / 1024
    return parts


def _part(mapped: str) -> str:
    if mapped.endswith(".plan"):
        return "plan file: constants and tables"
    if mapped.startswith(("libpocl", "libOpenCL", "libLLVM")):
        return "driver's library"
    if mapped == "[heap]":
        return "heap: mostly the driver's"
    return "other files" if mapped and not mapped.startswith("[") else "other memory: intermediates, threads"


def _peak(process: int) -> float:
    """The most memory that a running process has had, in MiB; the figure at its end would count its parent's, too."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The rows as Markdown."""
    size = (installed() / "lib" / "libsmartmem.so").stat().st_size
    header = "model, memory | equal | cold start s | C ms | Python ms | C / Python | peak MiB | planned MiB | load"
    text = markdown(header, [_row(key, row) for key, row in rows.items()])
    equal = sum(not row["error"] and row["equal"] for row in rows.values())
    return f"{text}\n\n{equal} of {len(rows)} equal to the byte. `libsmartmem.so`, stripped: {size / 1000:.0f} KB."


def _row(key: str, row: dict[str, Any]) -> list[str]:
    name, _, kind = key.rpartition(" ")
    if row["error"]:
        return [f"{name}, {kind}", row["error"][:60], *[""] * 7]
    equal = ("yes" if row["equal"] else "no") + (f", {row['extents']} extents" if row["extents"] > 1 else "")
    if "c_ms" not in row:
        return [f"{name}, {kind}", equal, *["-"] * 7]
    times = (f"{row['cold_seconds']:.2f}", f"{row['c_ms']:.1f}", f"{row['python_ms']:.1f}")
    ratio = f"{row['c_ms'] / row['python_ms']:.2f}"
    load = f"{row['load']:.0f}" if "load" in row else "busy"
    return [f"{name}, {kind}", equal, *times, ratio, f"{row['peak']:.0f}", f"{row['planned']:.0f}", load]


if __name__ == "__main__":
    sys.exit(main())
