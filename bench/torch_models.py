"""`torch.compile(model, backend="smartmem")` on models of timm and transformers, beside Inductor.

`python bench/torch_models.py --json build/torch_models.json` needs the extra `torch` with timm and transformers; models
that the file has already are left as they are. `--write docs/torch.md` puts the table there.

A model is right if, for inputs that no plan was made with, its largest difference from the model in double precision is
at most `FACTOR` times that of eager single precision, or `FACTOR` roundings of its largest value: both round as often,
in another order. Where the model's own code takes no double precision (XGLM), eager outputs are the reference.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import math
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markdown_tables import markdown, replace_table
from torch_model_list import Example, example, names
from turns import in_turns

FACTOR = 16
ROUNDING = 2.0**-23
TURNS, RUNS = 5, 7
HEADER = "model | right | left to PyTorch | error, ours | error, eager | ours ms | Inductor ms | eager ms | over ours"


def main() -> int:
    """Measure, store, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="by default all models")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--no-peer", action="store_true", help="without Inductor and times")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    for name in arguments.names or names():
        if name in found:
            continue
        found[name] = measured(name, not arguments.no_peer)
        print(name, json.dumps(found[name]), flush=True)
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(found, indent=1))
    if arguments.write:
        replace_table(arguments.write, "torch models", table(found))
    return 0


def measured(name: str, with_peer: bool) -> dict[str, Any]:
    """What is known of one model; `error` says why there is no result."""
    import torch

    torch._dynamo.reset()
    try:
        with torch.no_grad():
            return _measured(example(name), with_peer)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}


def _measured(one: Example, with_peer: bool) -> dict[str, Any]:
    import torch

    from smartmem_rules.torch_backend.backend import smartmem
    from smartmem_rules.torch_backend.errors import LeftToEagerWarning

    first, other = one.inputs(1), one.inputs(2)
    ours = torch.compile(one.module, backend=smartmem)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ours(*first, **one.named)
    result: dict[str, Any] = {"compile_s": time.perf_counter() - start, "load": os.getloadavg()[0]}
    result["left"] = [str(one.message) for one in warned if issubclass(one.category, LeftToEagerWarning)]
    eager = tensors(one.module(*other, **one.named))
    wanted = in_double(one, other) or eager
    result["ours_error"] = error_of(tensors(ours(*other, **one.named)), wanted)
    result["eager_error"] = error_of(eager, wanted)
    result["right"] = result["ours_error"] <= FACTOR * max(result["eager_error"], ROUNDING)
    if with_peer:
        result |= times(one, ours)
    return result


def in_double(one: Example, given: tuple[Any, ...]) -> list[Any]:
    """The outputs in double precision; none where the model's own code does not take it."""
    double = copy.deepcopy(one.module).double()
    try:
        return tensors(double(*(t.double() if t.is_floating_point() else t for t in given), **one.named))
    except RuntimeError as error:
        print(f"no double precision: {error}", file=sys.stderr)
        return []


def times(one: Example, ours: Callable[..., Any]) -> dict[str, Any]:
    """Milliseconds of ours, Inductor's and eager inferences, in turns."""
    import torch

    given = one.inputs(1)
    inductor = torch.compile(one.module, backend="inductor")
    start = time.perf_counter()
    inductor(*given, **one.named)
    compiled = time.perf_counter() - start
    calls = {"ours": ours, "inductor": inductor, "eager": one.module}
    systems = {name: functools.partial(call, *given, **one.named) for name, call in calls.items()}
    medians = {f"{name}_ms": statistics.median(s) * 1e3 for name, s in in_turns(systems, TURNS, RUNS).items()}
    return {**medians, "inductor_compile_s": compiled, "timed_load": os.getloadavg()[0]}


def tensors(output: Any) -> list[Any]:
    """The tensors of what a model gives."""
    import torch

    if isinstance(output, torch.Tensor):
        return [output]
    values = output.values() if isinstance(output, dict) else output
    return [tensor for value in values if value is not None for tensor in tensors(value)]


def error_of(found: list[Any], wanted: list[Any]) -> float:
    """The largest difference relative to the largest value, over all outputs; infinite for other shapes or values."""
    if len(found) != len(wanted):
        return float("inf")
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape or not bool(one.isfinite().all()):
            return float("inf")
        scale = float(other.abs().max()) or 1.0
        worst = max(worst, float((one.double() - other.double()).abs().max()) / scale)
    return worst


def table(found: dict[str, Any]) -> str:
    """All models."""
    rows = []
    for name, one in found.items():
        if "error" in one:
            rows.append([name, f"refused: {one['error']}", *[""] * 7])
            continue
        left = sum(text.count(" at ") for text in one["left"])
        timed = [f"{one[f'{key}_ms']:.2f}" if f"{key}_ms" in one else "" for key in ("ours", "inductor", "eager")]
        errors = [f"{one['ours_error']:.1e}", f"{one['eager_error']:.1e}"]
        ratio = f"{one['inductor_ms'] / one['ours_ms']:.2f}" if "ours_ms" in one else ""
        rows.append([name, "yes" if one["right"] else "**no**", str(left or ""), *errors, *timed, ratio])
    return f"{markdown(HEADER, rows)}\n\n{summary(found)}"


def summary(found: dict[str, Any]) -> str:
    """How many models are right, and the geometric means of Inductor's and eager times over ours."""
    right = sum(bool(one.get("right")) for one in found.values())
    timed = [one for one in found.values() if "ours_ms" in one]
    text = f"{right} of {len(found)} models are right."
    if not timed:
        return text
    inductor, eager = (mean([one[f"{peer}_ms"] / one["ours_ms"] for one in timed]) for peer in ("inductor", "eager"))
    return (
        f"{text} Geometric mean over the {len(timed)} that were timed:\n"
        f"Inductor takes {inductor:.2f} times as long, eager execution {eager:.2f} times."
    )


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
