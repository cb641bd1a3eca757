"""The tables of a CPU device: `python bench/pocl.py tinygrad|onnxruntime|contractions|levels|cold-start`.

Everything that is compared takes turns in one run; ratios are those of medians, and of the best runs beside them, which
a busy machine disturbs less.  The load of the machine stands above each table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "models"
SIX = ("swin_tiny", "vit_base", "convnext_tiny", "resnet50", "mobilenetv2", "bert_base")
TABLES = ("tinygrad", "onnxruntime", "contractions", "levels", "winograd", "tuned", "cold-start")
FILTERED = ("resnet50", "yolov8n", "sd_vae_decoder_small")
FOUR = ("swin_tiny", "vit_base", "resnet50", "mobilenetv2")
TRANSFORMERS = ("swin_tiny", "vit_base", "bert_base", "cswin_tiny", "autoformer_s3", "efficientvit_b3")
CONVNETS = ("resnet50", "mobilenetv2", "convnext_tiny", "efficientnet_b0", "regnetx_032", "resnext50")


def main() -> int:
    """Measure one table and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("models", nargs="*", help="names of examples/models; by default those of the table")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores\n")
    models, runs = arguments.models, arguments.runs
    if arguments.table in ("tinygrad", "onnxruntime"):
        beside(models or (FOUR if arguments.table == "tinygrad" else SIX), arguments.table, runs, arguments.device)
    elif arguments.table == "winograd":
        winograd(models or FILTERED, runs, arguments.device)
    elif arguments.table == "tuned":
        tuned(models or SIX, runs, arguments.device)
    elif arguments.table == "contractions":
        contractions(models or ("resnet50", "vit_base"), runs)
    elif arguments.table == "levels":
        for name, group in (("transformers and hybrids", TRANSFORMERS), ("ConvNets", CONVNETS)):
            chosen = [one for one in group if not models or one in models]
            if chosen:
                levels(name, chosen, runs, arguments.device)
    else:
        cold_start((models or ["swin_tiny"])[0], runs)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    return 0


def bench(model: str, *options: str) -> list[dict[str, Any]]:
    """The results of `smartmem bench`."""
    command = [sys.executable, "-m", "smartmem_rules.cli", "bench", str(FOLDER / f"{model}.onnx"), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{model}: the benchmark failed with exit code {done.returncode}")
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return results


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def beside(models: Sequence[str], system: str, runs: int, device: str) -> None:
    """Ours beside one system; ratios above 1 say that the other one takes longer."""
    print(f"| model | ours ms (best) | {system} ms (best) | {system} / ours | of the best | error |")
    print("|---|---:|---:|---:|---:|---:|")
    ratios, best = [], []
    for model in models:
        rows = bench(model, "--against", system, "--runs", str(runs), "--device", device)
        if len(rows) < 2:
            print(f"| {model} | {rows[0]['median_ms']:.1f} | - | | | |", flush=True)
            continue
        ours, other = rows
        ratios.append(other["median_ms"] / ours["median_ms"])
        best.append(other["min_ms"] / ours["min_ms"])
        times = " | ".join(f"{row['median_ms']:.1f} ({row['min_ms']:.1f})" for row in rows)
        error = ours["check"]["max_relative_error"] if ours["check"] else math.nan
        print(f"| {model} | {times} | {ratios[-1]:.2f} | {best[-1]:.2f} | {error:.1e} |", flush=True)
    if ratios:
        print(f"| geometric mean | | | {mean(ratios):.2f} | {mean(best):.2f} | |")
        print(f"\nours over {system}, geometric mean: {1 / mean(ratios):.2f}, of the best runs {1 / mean(best):.2f}")


def levels(name: str, models: Sequence[str], runs: int, device: str) -> None:
    """Level dnnfusion over level smartmem."""
    print(f"{name}\n\n| model | dnnfusion ms | smartmem ms | ratio | of the best |\n|---|---:|---:|---:|---:|")
    ratios, best = [], []
    for model in models:
        options = ("--level", "dnnfusion,smartmem", "--runs", str(runs), "--device", device, "--no-check")
        slow, fast = bench(model, *options)
        ratios.append(slow["median_ms"] / fast["median_ms"])
        best.append(slow["min_ms"] / fast["min_ms"])
        times = f"{slow['median_ms']:.1f} | {fast['median_ms']:.1f}"
        print(f"| {model} | {times} | {ratios[-1]:.2f} | {best[-1]:.2f} |", flush=True)
    print(f"| geometric mean | | | {mean(ratios):.2f} | {mean(best):.2f} |\n", flush=True)


def planning_of(model: str, device: str, disable: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """The kernels of a model before they are sized, and what they are for."""
    from smartmem_rules.pipeline import Request, make_planning

    return make_planning(Request(FOLDER / f"{model}.onnx", (), device, "smartmem", "float32", "auto", disable, {}))


def in_turns(plans: Sequence[Any], device: Any, runs: int) -> tuple[np.ndarray, list[Any]]:
    """Whole inferences of plans of one model in turns.

    Returns:
        milliseconds of processor time of all cores by run and plan, which other work on the machine disturbs less than
        the time that passes; and the outputs of each plan for the same inputs.
    """
    from smartmem_rules.runtime.executor import Executor, input_types
    from smartmem_rules.runtime.feeds import random_feeds

    feeds = random_feeds(input_types(plans[0]), 0, plans[0].statistics.model.input_bounds)
    executors = [Executor(plan, device) for plan in plans]
    outputs = [executor.run(feeds) for executor in executors]
    times = np.zeros((runs, len(plans)))
    for run in range(runs):
        places = range(len(plans)) if run % 2 else range(len(plans) - 1, -1, -1)
        for place in places:
            start = time.process_time()
            executors[place].run(feeds)
            times[run, place] = (time.process_time() - start) * 1e3
    return times, outputs


def winograd(models: Sequence[str], runs: int, device: str) -> None:
    """Plans with Winograd's filtering over plans without it."""
    from smartmem_rules.emit.plan import finish

    print("| model | filtered | kernels | CPU ms direct (best) | filtered (best) | filtered / direct | difference |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for model in models:
        found = [planning_of(model, device, off) for off in (("winograd_2", "winograd_4"), ())]
        plans = [finish(planning) for planning, _ in found]
        spent, (one, other) = in_turns(plans, found[0][1].device, runs)
        kernels = [kernel for launch in plans[1].launches for kernel in launch.kernels]
        count = sum(kernel.template == "winograd" for kernel in kernels)
        error = max(float(np.abs(one[n] - other[n]).max() / (np.abs(one[n]).max() or 1.0)) for n in one)
        times = " | ".join(f"{np.median(column):.1f} ({column.min():.1f})" for column in spent.T)
        ratio = np.median(spent[:, 1] / spent[:, 0])
        launches = f"{len(plans[0].launches)} / {len(plans[1].launches)}"
        print(f"| {model} | {count} | {launches} | {times} | {ratio:.2f} | {error:.1e} |", flush=True)


def tuned(models: Sequence[str], runs: int, device: str) -> None:
    """How many times as long the cost model's sizes take as tuned ones: the worst kernel, all of them, whole models."""
    from smartmem_rules.emit.plan import finish, variant
    from smartmem_rules.plan.kernel.key import launch_key
    from smartmem_rules.tuning.database import Place, Tunings, shipped
    from smartmem_rules.tuning.measure import Job, measure
    from smartmem_rules.tuning.tuner import shape

    heads = ("model", "kernels with a choice", "searched", "tuned", "worst kernel", "cost model / tuned", "whole model")
    print(f"| {' | '.join(heads)} |\n|---|---:|---:|---:|---|---:|---:|")
    for model in models:
        planning, target = planning_of(model, device)
        place = Place(target.device.name, target.device.driver, target.profile.name)
        database = Tunings.of_user()
        choices = database.choices(place)
        searched = {one.kernel for one in (*database.tuned(place), *shipped(place.profile))}
        scheduler = planning.scheduler(dict(planning.tensors), None)
        spaces = {launch_key(k, planning.tensors): (k, scheduler.space(k, 2)) for k in planning.launches}
        spaces = {key: (launch, space) for key, (launch, space) in spaces.items() if len(space) > 1}
        ratios = {}
        for key in (key for key in spaces if key in choices and choices[key] != spaces[key][1][0]):
            launch, space = spaces[key]
            model_choice, tuned = (variant(planning, launch, key, choice) for choice in (space[0], choices[key]))
            found = measure(Job(model_choice, tuned, target.device.name, 0))
            ratios[shape(launch)] = 1 / found.ratio
        worst = max(ratios, key=lambda name: ratios[name], default="")
        plans = [finish(planning, known) for known in (None, choices)]
        spent, _ = in_turns(plans, target.device, runs)
        counts = f"{len(spaces)} | {len(set(spaces) & searched)} | {len(ratios)}"
        ratio = f"{ratios[worst]:.2f}" if worst else "1.00"
        whole = np.median(spent[:, 0] / spent[:, 1])
        print(f"| {model} | {counts} | {worst or '-'} | {ratio} | {whole:.2f} |", flush=True)


def contractions(models: Sequence[str], runs: int) -> None:
    """The plain products of models (no statistics before them) beside numpy's product of the same shape.

    Both run on one core, so that only the kernels count: run it with POCL_MAX_PTHREAD_COUNT=1 OPENBLAS_NUM_THREADS=1.
    """
    from smartmem_rules.emit.plan import variant
    from smartmem_rules.pipeline import Request, make_planning
    from smartmem_rules.plan.kernel.key import kernel_key
    from smartmem_rules.plan.kernel.launch import Single
    from smartmem_rules.runtime.devices import choose
    from smartmem_rules.tuning.database import Place, Tunings
    from smartmem_rules.tuning.measure import runnable
    from smartmem_rules.tuning.tuner import shape

    device = choose()
    ours, theirs = (os.environ.get(name, "all") for name in ("POCL_MAX_PTHREAD_COUNT", "OPENBLAS_NUM_THREADS"))
    print(f"threads: PoCL {ours}, OpenBLAS {theirs}; best of {runs} runs\n")
    for model in models:
        print(f"| {model}: rows x reduction x columns | times | ours GFLOP/s | OpenBLAS GFLOP/s | share |")
        print("|---|---:|---:|---:|---:|")
        request = Request(FOLDER / f"{model}.onnx", (), "auto", "smartmem", "float32", "auto", (), {})
        planning, target = make_planning(request)
        choices = Tunings.of_user().choices(Place(device.name, device.driver, target.profile.name))
        found: dict[str, list[Any]] = {}
        for kernel in (kernel for launch in planning.launches for kernel in launch.kernels):
            c = kernel.contraction
            if c is not None and not (c.stages or c.scores or kernel.parts or kernel.stages) and not c.batch:
                found.setdefault(kernel_key(kernel, planning.tensors), [kernel, 0])[1] += 1
        shares, weights = [], []
        for key, (kernel, count) in found.items():
            c = kernel.contraction
            m, k, n = math.prod(v.extent for v in c.m), math.prod(v.extent for v in c.k), c.n.extent
            if m < 4:
                continue
            alone = Single(kernel=kernel)
            product = runnable(variant(planning, alone, key, choices.get(key)), device, 0)
            a, b = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
            mine = blas = math.inf
            for _ in range(runs):
                mine = min(mine, product.profile({})[0][1])
                start = time.perf_counter()
                a @ b
                blas = min(blas, (time.perf_counter() - start) * 1e3)
            work = 2e-6 * m * k * n
            shares.append(blas / mine)
            weights.append(count * blas)
            rates = f"{work / mine:.0f} | {work / blas:.0f}"
            print(f"| {shape(alone)} | {count} | {rates} | {shares[-1]:.0%} |", flush=True)
        total = sum(weights) / sum(w / s for w, s in zip(weights, shares, strict=True))
        print(f"| all of them | {sum(c for _, c in found.values())} | | | {total:.0%} |\n")


def cold_start(model: str, runs: int) -> None:
    """A process that loads a saved plan and runs once, the programs compiled before."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "model.plan"
        start = [sys.executable, "-m", "smartmem_rules.cli"]
        subprocess.run([*start, "optimize", str(FOLDER / f"{model}.onnx"), "--no-check", "-o", str(plan), "--json"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        walls, cpus = [], []
        for number in range(runs + 2):
            before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*start, "run", str(plan), "--json"], check=True, stdout=subprocess.DEVNULL)
            wall, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
            if number >= 2:
                walls.append(wall)
                cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"| {model}: load a plan and run once | median s | best s |\n|---|---:|---:|")
    print(f"| whole process | {np.median(walls):.2f} | {min(walls):.2f} |")
    print(f"| processor time of all cores | {np.median(cpus):.2f} | {min(cpus):.2f} |")


if __name__ == "__main__":
    sys.exit(main())
