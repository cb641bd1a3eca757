"""ONNX's own backend tests on an OpenCL device: how many pass, are refused (and why), are wrong.

`python bench/backend_suite.py` runs the node tests that count: over operators whose outputs are not strings, sequences,
optional values or random.  `--kind models` runs the others instead, whole models of old and new opsets (`simple`,
`pytorch-converted`, `pytorch-operator`, and `real`, networks with made-up weights), `--kind all` both.  `--only TEXT`
runs those with the text in their names, `--json FILE` writes every case's outcome.  The cases run in child processes,
so that a crash of a kernel is one case's outcome.
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
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.onnx_backend import SmartmemBackend, UnsupportedError

KINDS = {
    "node": ("node",),
    "models": ("simple", "pytorch-converted", "pytorch-operator", "real"),
    "all": ("node", "simple", "pytorch-converted", "pytorch-operator", "real"),
}
PASSED, UNSUPPORTED, WRONG, FAILED = "passed", "unsupported", "wrong", "failed"
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
SECONDS = 120
EPSILON = float(np.finfo(np.float32).eps)
HALF_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
"""What one rounding to the element type may change."""


class Case(Protocol):
    """What is needed of a test: ONNX's node tests have it."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> onnx.ModelProto: ...

    @property
    def data_sets(self) -> Sequence[tuple[Sequence[Any], Sequence[Any]]]:
        """Inputs and published outputs."""

    @property
    def rtol(self) -> float: ...

    @property
    def atol(self) -> float: ...


@dataclass(frozen=True)
class StoredCase:
    """A test whose model and data are files; they are read when they are asked for."""

    name: str
    path: Path
    rtol: float
    atol: float

    @cached_property
    def model(self) -> onnx.ModelProto:
        return onnx.load(str(self.path))

    @property
    def data_sets(self) -> list[tuple[list[Any], list[Any]]]:
        """The published data; networks with made-up weights have outputs alone, for inputs that rise from 0 to 1."""
        folders = sorted(self.path.parent.glob("test_data_set_*"))
        given = given_inputs(self.model)
        if not folders:
            published = sorted(self.path.parent.glob(f"{self.path.stem}_output_*.pb"))
            results = self.model.graph.output
            return [([rising(value) for value in given], list(map(stored_value, published, results)))]
        return [
            (stored_values(folder, "input", given), stored_values(folder, "output", self.model.graph.output))
            for folder in folders
        ]


def given_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that no initializer has a value for."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def rising(value: onnx.ValueInfoProto) -> Any:
    """The input that the outputs of the networks with made-up weights were computed for."""
    shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def stored_values(folder: Path, kind: str, values: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    """The inputs or outputs of a data set."""
    return [
        stored_value(folder / f"{kind}_{place}.pb", value)
        for place, value in enumerate(values)
        if (folder / f"{kind}_{place}.pb").exists()
    ]


def stored_value(path: Path, value: onnx.ValueInfoProto) -> Any:
    """What a file holds: an array or, for a sequence, a list of arrays."""
    if value.type.WhichOneof("value") == "sequence_type":
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(path.read_bytes())
        return numpy_helper.to_list(sequence)
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


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
    parser.add_argument("--kind", choices=sorted(KINDS), default="node", help="node tests, tests of models, or all")
    parser.add_argument("--only", default="", help="a part of the cases' names")
    parser.add_argument("--level", default="smartmem")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--json", type=Path, help="write every case's outcome here")
    parser.add_argument("--limit", type=int, default=0, help="every n-th case so that about this many run")
    arguments = parser.parse_args()
    cases = [case for name, case in cases_of(arguments.kind).items() if arguments.only in name]
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
    print(report(outcomes, "node tests" if arguments.kind == "node" else "backend tests"))
    return int(any(outcome.verdict in (WRONG, FAILED) for outcome in outcomes))


def report(outcomes: Sequence[Outcome], what: str = "node tests") -> str:
    """The counts, and the refused cases by operator and reason."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    lines = [
        f"{len(outcomes)} {what}: "
        + ", ".join(f"{counts[v]} {v}" for v in (PASSED, UNSUPPORTED, WRONG, FAILED))
        + f" ({100 * counts[PASSED] / max(1, len(outcomes)):.1f} % passed)"
    ]
    reasons = Counter((outcome.operators[0], outcome.reason) for outcome in outcomes if outcome.verdict == UNSUPPORTED)
    lines += [f"{count:5} {operator}: {reason}" for (operator, reason), count in sorted(reasons.items())]
    return "\n".join(lines)


def cases_of(kind: str) -> dict[str, Case]:
    """The cases of one of `KINDS`, by name."""
    found: dict[str, Case] = {}
    for one in KINDS[kind]:
        found.update(counted_cases() if one == "node" else stored_cases(one))
    return found


def stored_cases(kind: str) -> dict[str, Case]:
    """All cases of a kind whose models are files, by name."""
    from onnx.backend.test.loader import load_model_tests

    found: dict[str, Case] = {}
    for case in sorted(load_model_tests(kind=kind), key=lambda case: str(case.name)):
        path = Path(case.model_dir) / "model.onnx" if case.model_dir else Path(onnx.__file__).parents[1] / str(case.url)
        if path.exists():
            found[case.name] = StoredCase(case.name, path, case.rtol, case.atol)
        elif case.model is not None:
            found[case.name] = cast("Case", case)
    return found


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
