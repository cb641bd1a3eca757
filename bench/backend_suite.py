"""ONNX's own backend node tests on an OpenCL device: how many pass, are refused (and why), are wrong.

`python bench/backend_suite.py` runs those that count: over operators whose outputs are not strings, sequences, optional
values or random.  `--only TEXT` runs those with the text in their names, `--json FILE` writes every case's outcome.
The cases run in child processes, so that a crash of a kernel is one case's outcome.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from smartmem_rules.onnx_backend import SmartmemBackend, UnsupportedError

PASSED, UNSUPPORTED, WRONG, FAILED = "passed", "unsupported", "wrong", "failed"
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
SECONDS = 120
EPSILON = float(np.finfo(np.float32).eps)
HALF_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
"""What one rounding to the element type may change."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    name: str
    operators: tuple[str, ...]
    verdict: str
    reason: str = ""
    seconds: float = 0.0


def main() -> int:
    """Run the cases and print the table; 1 if any case is wrong or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the cases' names")
    parser.add_argument("--level", default="smartmem")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--json", type=Path, help="write every case's outcome here")
    parser.add_argument("--limit", type=int, default=0, help="every n-th case so that about this many run")
    arguments = parser.parse_args()
    cases = [case for name, case in counted_cases().items() if arguments.only in name]
    if arguments.limit:
        cases = cases[:: max(1, len(cases) // arguments.limit)]
    outcomes = []
    for outcome in run_cases(cases, arguments.device, arguments.level):
        outcomes.append(outcome)
        if outcome.verdict in (WRONG, FAILED):
            print(f"{outcome.verdict:12} {outcome.name}: {outcome.reason}", file=sys.stderr, flush=True)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1))
    print(report(outcomes))
    return int(any(outcome.verdict in (WRONG, FAILED) for outcome in outcomes))


def report(outcomes: Sequence[Outcome]) -> str:
    """The counts, and the refused cases by operator and reason."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    lines = [
        f"{len(outcomes)} node tests: "
        + ", ".join(f"{counts[v]} {v}" for v in (PASSED, UNSUPPORTED, WRONG, FAILED))
        + f" ({100 * counts[PASSED] / max(1, len(outcomes)):.1f} % passed)"
    ]
    reasons = Counter((outcome.operators[0], outcome.reason) for outcome in outcomes if outcome.verdict == UNSUPPORTED)
    lines += [f"{count:5} {operator}: {reason}" for (operator, reason), count in sorted(reasons.items())]
    return "\n".join(lines)


def counted_cases() -> dict[str, Any]:
    """The cases over operators whose outputs are not strings, sequences, optional values or random, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed: list[Any] = load_model_tests(kind="node")
    return {case.name: case for case in sorted(listed, key=lambda case: str(case.name)) if counts(case.model)}


def counts(model: onnx.ModelProto) -> bool:
    """Whether a case is one of those that are counted."""
    if any(node.op_type in RANDOM for node in model.graph.node) or any(
        node.op_type == "Dropout" and len(node.input) > 2 for node in model.graph.node
    ):
        return False
    for value in model.graph.output:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type" or value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return False
    return True


def run_cases(cases: Sequence[Any], device: str, level: str) -> Iterator[Outcome]:
    """The outcomes in order; a new child process takes over where one crashed or hung."""
    rest = list(cases)
    processes = get_context("fork")  # the cases are made once; nothing of OpenCL is loaded before
    while rest:
        receiver, sender = processes.Pipe(duplex=False)
        child = processes.Process(target=_work, args=(sender, rest, device, level), daemon=True)
        child.start()
        sender.close()
        started = time.monotonic()
        while rest:
            ready = receiver.poll(SECONDS)
            try:
                outcome = receiver.recv() if ready else None
            except EOFError:
                outcome = None
            if outcome is None:
                if not ready:
                    child.kill()
                child.join(10)
                how = f"the process died of {_signal(child.exitcode)}" if ready else "no answer in time"
                case = rest.pop(0)
                yield Outcome(case.name, operators(case), FAILED, how, time.monotonic() - started)
                break
            started = time.monotonic()
            rest.pop(0)
            yield outcome
        child.join(5)


def _signal(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _work(sender: Connection, cases: Sequence[Any], device: str, level: str) -> None:
    for case in cases:
        sender.send(run_case(case, device, level))


def operators(case: Any) -> tuple[str, ...]:
    """The operators of a case."""
    return tuple(dict.fromkeys(node.op_type for node in case.model.graph.node)) or ("none",)


def run_case(case: Any, device: str = "CPU", level: str = "smartmem") -> Outcome:
    """Run one case with all of its data sets."""
    start = time.perf_counter()

    def outcome(verdict: str, reason: str = "") -> Outcome:
        return Outcome(case.name, operators(case), verdict, reason, time.perf_counter() - start)

    try:
        prepared = SmartmemBackend.prepare(case.model, device, level=level)
        for inputs, outputs in case.data_sets:
            results = prepared.run([as_array(value) for value in inputs])
            wanted = [as_array(value) for value in outputs]
            for value, result, reference in zip(case.model.graph.output, results, wanted, strict=True):
                difference = differs(result, reference, case)
                if difference:
                    return outcome(WRONG, f"{value.name}: {difference}")
    except UnsupportedError as reason:
        return outcome(UNSUPPORTED, " ".join(str(reason).removeprefix("unsupported: ").split()))
    except Exception as error:  # whatever is raised is what this suite is to find
        return outcome(FAILED, f"{type(error).__name__}: {' '.join(str(error).split())}")
    return outcome(PASSED)


def as_array(value: Any) -> Any:
    """A case's value as an array; sequences stay lists."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)


def differs(result: Any, reference: Any, case: Any) -> str:
    """How a result differs from the published one; empty if it does not."""
    if result.dtype != reference.dtype:
        return f"{result.dtype} instead of {reference.dtype}"
    if result.shape != reference.shape:
        return f"shape {list(result.shape)} instead of {list(reference.shape)}"
    if result.dtype.kind not in "fV":
        wrong = np.count_nonzero(result != reference)
        return f"{wrong} of {result.size} elements differ" if wrong else ""
    relative = max(case.rtol, HALF_TOLERANCE.get(result.dtype.name, 0))
    got, wanted = result.astype(np.float64), reference.astype(np.float64)
    # one rounding of the largest value: published sums that should be zero carry as much
    least = EPSILON * float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted)))
    with np.errstate(all="ignore"):
        close = np.isclose(got, wanted, rtol=relative, atol=max(case.atol, least), equal_nan=True)
        if close.all():
            return ""
        return (
            f"{np.count_nonzero(~close)} of {close.size} elements differ, by up to {np.nanmax(abs(got - wanted)):.3g}"
        )


if __name__ == "__main__":
    sys.exit(main())
