"""`smartmem simplify` beside onnxsim and OnnxSlim: nodes, sizes, time, memory, ONNX Runtime's latency, wrong results.

    python -m venv peers && peers/bin/pip install onnxsim onnxslim onnxruntime
    smartmem zoo --all -o zoo
    python bench/simplify.py zoo/*.onnx --peers peers/bin/python --latency 11 --json zoo.json
    python bench/simplify.py generated/*.onnx --peers peers/bin/python --json generated.json
    python bench/simplify.py --table zoo.json generated.json
    python bench/simplify.py --table zoo.json --write docs/simplify.md
    python bench/simplify.py examples/models/dynamic/*.onnx --peers peers/bin/python --latency 31 --json open.json
    python bench/simplify.py --table open.json --write docs/simplify.md --name simplified-open
    python bench/simplify.py --backend --peers peers/bin/python --json backend.json
    python bench/simplify.py --table backend.json --write docs/simplify.md --name simplified-backend

Each model is simplified by each tool; every result is compared with the model itself by ONNX Runtime on random inputs,
both without optimizations. Memory is that of the process, in which a worker does one model if `--latency` is given and
all of them otherwise. Latency is the median processor time of interleaved runs in one thread with all of ONNX Runtime's
optimizations, and the ratio to the input's that of runs in the same turn. Models that describe their weights are
written with them first. `--backend` takes the models of the onnx package's backend tests that are more than one node.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import onnxruntime
from markdown_tables import replace_table

from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.weights import graph_tensors
from smartmem_rules.graph.zoo import save_materialized
from smartmem_rules.simplification.checking import Checker, DifferentError
from smartmem_rules.simplification.drawn import is_described
from smartmem_rules.simplification.feeding import CheckError
from smartmem_rules.simplification.report import counts_of

BACKEND_TESTS = ("simple", "pytorch-converted", "pytorch-operator")
TOOLS = ("smartmem", "onnxsim", "onnxslim")
_PATIENCE = 600
_FEW_RUNS = 7
_NOISE = 0.05
"""What two measurements of one file differ by."""
_SECONDS = 60.0
"""After so many seconds no more than a few runs are measured."""


@dataclass(frozen=True)
class Latency:
    """How long ONNX Runtime takes.

    Attributes:
        milliseconds: of processor time, the median.
        to_input: the median of the ratios to the run of the model itself in the same turn.
    """

    milliseconds: float
    to_input: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--peers", type=Path, help="a Python that has onnxsim and onnxslim")
    parser.add_argument("--latency", type=int, default=0, help="runs of which the median is ONNX Runtime's latency")
    parser.add_argument("--json", type=Path, help="results; models that are in it already are left out")
    parser.add_argument("--table", nargs="+", type=Path, help="print the tables of such results instead")
    parser.add_argument("--write", type=Path, help="put the tables into this file, between its marks")
    parser.add_argument("--backend", action="store_true", help="whole models of ONNX's backend tests as well")
    parser.add_argument("--name", default="simplified", help="of the marks in that file")
    given = parser.parse_args()
    if given.table:
        text = "\n".join(table_of(json.loads(path.read_text("utf-8"))) for path in given.table)
        if given.write:
            replace_table(given.write, given.name, text.rstrip())
        else:
            print(text)
        return
    with tempfile.TemporaryDirectory(prefix="simplify-backend-") as name:
        measure([*given.models, *(backend_models(Path(name)) if given.backend else [])], given)


def backend_models(folder: Path) -> list[Path]:
    """The models of ONNX's backend tests of whole models, as files that are called as the tests."""
    data = Path(onnx.backend.test.__file__).with_name("data")
    found = []
    for kind in BACKEND_TESTS:
        for model in sorted((data / kind).glob("*/model.onnx")):
            found.append(folder / f"{model.parent.name}.onnx")
            shutil.copyfile(model, found[-1])
    return found


def measure(models: Sequence[Path], given: argparse.Namespace) -> None:
    """Simplify models by all tools and write what is found."""
    known = json.loads(given.json.read_text("utf-8")) if given.json and given.json.exists() else {}
    paths = [path for path in models if path.stem not in known]
    pythons = {"smartmem": sys.executable}
    if given.peers:
        pythons |= {"onnxsim": str(given.peers), "onnxslim": str(given.peers)}
    for batch in [[path] for path in paths] if given.latency else [paths]:
        with tempfile.TemporaryDirectory(prefix="simplify-", dir=given.json.parent if given.json else None) as name:
            batch = [with_weights(path, Path(name)) for path in batch]
            said = {tool: run_tool(tool, python, batch, Path(name) / tool) for tool, python in pythons.items()}
            for path in batch:
                made = {tool: found[path] for tool, found in said.items()}
                known[path.stem] = compared(path, made, given.latency, Path(name))
                print(path.stem, {tool: one.get("nodes", one) for tool, one in known[path.stem].items()}, flush=True)
        if given.json:
            given.json.write_text(json.dumps(known, indent=1) + "\n")


def with_weights(path: Path, folder: Path) -> Path:
    """The file of a model, or one in the folder with the weights that the model describes."""
    model = onnx.load(str(path), load_external_data=False)
    if not any(is_described(tensor) for _, tensor in graph_tensors(model.graph)):
        return path
    save_materialized(path, folder / path.name)
    return folder / path.name


def run_tool(tool: str, python: str, paths: Sequence[Path], folder: Path) -> dict[Path, dict[str, Any]]:
    """What a tool says of each model; its results lie in the folder. A model on which its process ends is a crash."""
    folder.mkdir()
    found: dict[Path, dict[str, Any]] = {}
    while len(found) < len(paths):
        waiting = [path for path in paths if path not in found]
        for path, said in _answers(tool, python, waiting, folder):
            found[path] = {**said, "file": str(folder / path.name)}
        if len(found) < len(paths) and waiting:
            crashed = next(path for path in paths if path not in found)
            found[crashed] = {"error": "its process ended", "file": str(folder / crashed.name)}
    return found


def _answers(tool: str, python: str, paths: Sequence[Path], folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    worker = Path(__file__).with_name("simplify_worker.py")
    pairs = "".join(f"{path.resolve()}\t{folder / path.name}\n" for path in paths)
    try:
        done = subprocess.run(
            [python, str(worker), tool], input=pairs, capture_output=True, text=True, timeout=_PATIENCE * len(paths)
        )
        text = done.stdout
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode()
    lines = [line for line in text.splitlines() if line.startswith("{") and '"seconds"' in line]
    yield from zip(paths, map(json.loads, lines), strict=False)


def compared(path: Path, said: Mapping[str, dict[str, Any]], latency: int, folder: Path) -> dict[str, Any]:
    """The counts of a model and of what each tool made of it, and whether that computes the same.

    Args:
        folder: for weights that the model describes.
    """
    model = onnx.load(str(path), load_external_data=False)
    result: dict[str, Any] = {"input": _counts(path)}
    files = {tool: Path(one.pop("file")) for tool, one in said.items()}
    for tool, one in said.items():
        result[tool] = {**one, **(_counts(files[tool]) if files[tool].exists() else {})}
    try:
        checker = Checker(path, model, {}, folder)
    except SmartmemError as error:
        return {**result, "unchecked": {"reason": str(error)}}
    if checker.left_out:  # what the others make of such nodes cannot be told from what they should
        return {**result, "unchecked": {"reason": "ONNX Runtime does not run some of its nodes"}}
    for tool, made in files.items():
        one = result[tool]
        if not made.exists():
            continue
        try:
            one["error_to_input"] = checker.check(made).max_relative_error
        except (DifferentError, CheckError) as error:
            one["wrong"] = str(error)
        except Exception as error:
            one["wrong"] = f"{type(error).__name__}: {error}"[:300]
    if latency:
        right = [tool for tool in said if "wrong" not in result[tool] and "path" in result[tool]]
        files = {tool: Path(result[tool]["path"]) for tool in right}
        for name, found in latencies({"input": path, **files}, checker, latency).items():
            result[name] |= asdict(found)
    return result


def _counts(path: Path) -> dict[str, Any]:
    model = onnx.load(str(path), load_external_data=False)
    data = sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*data"))
    counts = counts_of(model, path.stat().st_size + data)
    return {
        "nodes": counts.nodes, "kinds": len(counts.kinds), "initializers": counts.initializers, "bytes": counts.bytes,
        "path": str(path),
    }  # fmt: skip


def latencies(files: Mapping[str, Path], checker: Checker, runs: int) -> dict[str, Latency]:
    """The latency of each file: processor time in one thread, which others that use the machine disturb least.

    The files take turns in changing order, so that what disturbs disturbs all of them. Files of equal content are
    measured once. Models that are slow have fewer runs, so that none takes many minutes.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    same = {name: hashlib.sha256(path.read_bytes()).digest() for name, path in files.items()}
    first = {digest: name for name, digest in reversed(same.items())}
    sessions = {
        name: onnxruntime.InferenceSession(str(files[name]), options, providers=["CPUExecutionProvider"])
        for name in files
        if name in first.values()
    }
    feeds = dict(checker.feeds)
    spent: dict[str, list[float]] = {name: [] for name in sessions}
    names, began = list(sessions), time.perf_counter()
    for number in range(runs + 1):
        if number > _FEW_RUNS and time.perf_counter() - began > _SECONDS:
            break
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = time.thread_time()
            sessions[name].run(None, feeds)
            if number:
                spent[name].append(1000 * (time.thread_time() - start))
    given = np.array(spent[first[same["input"]]])
    return {
        name: Latency(float(np.median(taken)), float(np.median(np.array(taken) / given)))
        for name, digest in same.items()
        for taken in (spent[first[digest]],)
    }


def table_of(results: Mapping[str, Any]) -> str:
    """Markdown: a line for each model if latencies were measured, and the totals."""
    checked = {name: one for name, one in results.items() if "unchecked" not in one}
    lines = []
    if any("milliseconds" in one["input"] for one in checked.values()):
        head = (
            "model",
            "nodes: input",
            "smartmem",
            "onnxsim",
            "OnnxSlim",
            "kinds",
            "initializers",
            "MB",
            "s",
            "GB",
            "ms",
            "of the input's",
        )
        lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [_line(name, one) for name, one in sorted(checked.items())]
        lines.append("")
    lines += ["| | input | smartmem | onnxsim | OnnxSlim |", "|---|---|---|---|---|"]
    lines += _totals(checked)
    if len(checked) < len(results):
        left = len(results) - len(checked)
        lines[-1] += f"\n{left} more were not compared: ONNX Runtime does not run them as a whole."
    return "\n".join(lines) + "\n"


def _line(name: str, one: Mapping[str, Any]) -> str:
    def row(key: str, form: str, scale: float = 1.0, tools: Sequence[str] = ("input", *TOOLS)) -> str:
        values = (one.get(tool, {}).get(key) for tool in tools)
        return " / ".join("-" if value is None else format(value * scale, form) for value in values)

    nodes = [str(one.get(tool, {}).get("nodes", "-")) for tool in TOOLS]
    nodes = [f"{n} wrong" if "wrong" in one.get(tool, {}) else n for n, tool in zip(nodes, TOOLS, strict=True)]
    return (
        f"| {name} | {one['input']['nodes']} | {' | '.join(nodes)} | {row('kinds', '.0f')} "
        f"| {row('initializers', '.0f')} "
        f"| {row('bytes', '.0f', 1e-6)} | {row('seconds', '.1f', tools=TOOLS)} "
        f"| {row('kilobytes', '.1f', 1e-6, TOOLS)} | {row('milliseconds', '.1f')} "
        f"| {row('to_input', '.2f', tools=TOOLS)} |"
    )


def _totals(checked: Mapping[str, Any]) -> list[str]:
    everyone = ("input", *TOOLS)

    def total(key: str, tool: str) -> str:
        return str(sum(one.get(tool, {}).get(key, one["input"].get(key, 0)) for one in checked.values()))

    def count(key: str, tool: str) -> str:
        return str(sum(key in one.get(tool, {}) for one in checked.values()))

    def fewest(one: Mapping[str, Any]) -> int:
        right = (t for t in TOOLS[1:] if "wrong" not in one.get(t, {}) and "nodes" in one.get(t, {}))
        return int(min((one[t]["nodes"] for t in right), default=one["input"]["nodes"]))

    best = sum(one["smartmem"].get("nodes", one["input"]["nodes"]) <= fewest(one) for one in checked.values())
    keys = ("nodes", "initializers", "bytes")
    rows = [f"| {key} | " + " | ".join(total(key, tool) for tool in everyone) + " |" for key in keys]
    rows.append("| wrong | | " + " | ".join(count("wrong", tool) for tool in TOOLS) + " |")
    if any("to_input" in one["input"] for one in checked.values()):
        ratios = {
            tool: [one[tool]["to_input"] for one in checked.values() if "to_input" in one.get(tool, {})]
            for tool in TOOLS
        }
        means = " | ".join(
            f"{math.exp(float(np.mean(np.log(found)))):.3f}" if found else "" for found in ratios.values()
        )
        slower = " | ".join(str(sum(ratio > 1 + _NOISE for ratio in found)) for found in ratios.values())
        rows.append(f"| ONNX Runtime's time of the input's, geometric mean | 1 | {means} |")
        rows.append(f"| models on which that is more than {1 + _NOISE} | | {slower} |")
    rows.append("| refused or crashed | | " + " | ".join(count("error", tool) for tool in TOOLS) + " |")
    rows.append(
        f"\n{len(checked)} models; on {best} of them smartmem has at most the nodes of the better of the others."
    )
    return rows


if __name__ == "__main__":
    main()
