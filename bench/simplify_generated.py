"""Generated models simplified and run: the result as the rules give it, before `simplify` compares anything itself.

    python bench/simplify_generated.py --source drawn small computed --seed 400000000 --count 300
    python bench/simplify_generated.py --models build/nnsmith --count 300

Each model is simplified three times: with the standard operators, with those of com.microsoft, and with rules that
keep every bit. Both models run in ONNX Runtime without its optimizations, on the inputs of the case and for other
extents of open dimensions; results that keep every bit run on NaN, infinities and the largest numbers as well. Models
that ONNX's checker or ONNX Runtime does not take are passed over. A model whose results differ is kept in `--keep`, and
the exit status is 1. As in `smartmem simplify`, floats that differ are right where they are within what rounding
explains of the model in double precision. What rounding may turn altogether is for the reader to judge: `smartmem
simplify` writes the input in that case.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx
import onnxruntime

from smartmem_rules.fuzzing.case import Array, Case, load_case
from smartmem_rules.fuzzing.sources.by_name import SOURCES
from smartmem_rules.graph.loading import input_types
from smartmem_rules.graph.model import GraphError
from smartmem_rules.runtime.feeds import compare, random_feeds
from smartmem_rules.simplification.checking import is_of_floats, tolerance_of
from smartmem_rules.simplification.feeding import with_extents
from smartmem_rules.simplification.in_doubles import InDoubles
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.rewriting.region import NothingToDo
from smartmem_rules.simplification.rewriting.simplifying import seen_by_rules, simplified
from smartmem_rules.simplification.types import precisions_of
from smartmem_rules.writing.views import NotExpressible

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -3e38)
SHARE = 0.3
"""Of the elements of an input that are special values."""
EXTENTS = ((0,), (1,), (2,), (5,), (2, 3, 5), (3, 1, 2), (1, 4, 0))
"""Of open dimensions, one after the other in turns."""
EXACT = Options(exact=True)
DIFFERS, ERROR, ENDED = "differs", "ends with an error", "ends the process"
BAD = (DIFFERS, ERROR, ENDED)
CRASHES = "ONNX Runtime ends with the model itself"
WAYS = {"": Options(), "com.microsoft: ": Options(domains=("com.microsoft",)), "every bit: ": EXACT}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", nargs="+", choices=sorted(SOURCES), default=["drawn", "small"])
    parser.add_argument("--models", type=Path, help="a folder of models with inputs beside them instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="models of each source")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop")
    parser.add_argument("--keep", type=Path, default=Path("build/simplified"))
    given = parser.parse_args()
    until, found = time.monotonic() + given.seconds, Counter[str]()
    with Apart() as apart:
        for task in tasks(given):
            if time.monotonic() > until:
                break
            found[apart.outcome(task)] += 1
    print(dict(found))
    return int(any(found[bad] for bad in BAD))


@dataclass(frozen=True, kw_only=True)
class Task:
    """A model by its source and seed, or by its file, and where it is kept if something is wrong with it."""

    source: str
    seed: int
    file: Path | None
    keep: Path

    def case(self) -> Case:
        return SOURCES[self.source](self.seed) if self.file is None else load_case(self.file)

    def __str__(self) -> str:
        return f"{self.source} {self.seed}" if self.file is None else self.file.stem


class Apart:
    """A process that judges models, and another one where ONNX Runtime ends it."""

    def __enter__(self) -> Self:
        self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def outcome(self, task: Task) -> str:
        """What became of a model, in words."""
        try:
            return self._pool.submit(outcome, task).result()
        except BrokenProcessPool:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            self._pool.submit(is_valid, task).result()
        except BrokenProcessPool:
            self._pool = ProcessPoolExecutor(1, get_context("spawn"))
            return CRASHES
        print(f"{task}: {ENDED}", flush=True)
        return ENDED


def tasks(given: argparse.Namespace) -> Iterator[Task]:
    """The models, drawn or read."""
    if given.models:
        for number, path in enumerate(sorted(given.models.glob("*.onnx"))[: given.count]):
            yield Task(source="", seed=given.seed + number, file=path, keep=given.keep)
        return
    for seed in range(given.seed, given.seed + given.count):
        for source in given.source:
            yield Task(source=source, seed=seed, file=None, keep=given.keep)


def is_valid(task: Task) -> bool:
    """Whether there is a model, and ONNX's checker and ONNX Runtime take it and agree about its results' shapes."""
    try:
        case = task.case()
        onnx.checker.check_model(case.model, full_check=True)
        run(case.model, case.feeds)
    except Exception:
        return False
    return True


def outcome(task: Task) -> str:
    """What became of a model, in words."""
    if not is_valid(task):
        return "not valid"
    case = task.case()
    try:
        lines = [f"{way}{line}" for way, options in WAYS.items() for line in differences(case, options, task.seed)]
    except NothingToDo:
        return "nothing to do"
    except Exception as error:
        print(f"{task}: {type(error).__name__}: {error}", flush=True)
        case.save(task.keep, str(error))
        return ERROR
    if not lines:
        return "right"
    print(f"{task}: {'; '.join(lines)}", flush=True)
    case.save(task.keep, "; ".join(lines))
    return DIFFERS


def differences(case: Case, options: Options, seed: int) -> Iterator[str]:
    """What is wrong with the simplified form of a model."""
    made = simplified_form(case.model, options)
    exact = options.exact
    yield from compared(case.model, made, case.feeds, finite=not exact)
    for feeds in of_other_extents(case, seed):
        yield from (f"other extents: {line}" for line in compared(case.model, made, feeds, finite=not exact))
    if exact:
        special = with_special_values(case.feeds, seed)
        yield from (f"special values: {line}" for line in compared(case.model, made, special, finite=False))


def simplified_form(model: onnx.ModelProto, options: Options) -> onnx.ModelProto:
    """What the rules make of a model, which leaves open extents alone where it cannot be written otherwise."""
    try:
        made = simplified(seen_by_rules(model, None, options, open_extents=True), options).model
    except (GraphError, NotExpressible):
        made = simplified(seen_by_rules(model, None, options, open_extents=False), options).model
    onnx.checker.check_model(made)
    return made


def of_other_extents(case: Case, seed: int) -> Iterator[Mapping[str, Array]]:
    """Inputs of other extents, where a model has open dimensions and ONNX Runtime takes them."""
    if not case.mode.dims:
        return
    held = {tensor.name for tensor in case.model.graph.initializer}
    for extents in EXTENTS:
        dims = dict(zip(case.mode.dims, itertools.cycle(extents)))
        types = input_types(with_extents(case.model.graph, dims), held, {})
        feeds = random_feeds(types, seed, dict.fromkeys(types, 1))
        try:
            run(case.model, feeds)
        except Exception:  # ONNX Runtime's own classes: the extents do not fit each other
            continue
        yield feeds


def compared(model: onnx.ModelProto, made: onnx.ModelProto, feeds: Mapping[str, Array], finite: bool) -> Iterator[str]:
    """The outputs that differ; with `finite` only those whose numbers are finite are compared."""
    precisions, in_doubles = precisions_of(model), InDoubles(model)
    for value, wanted, got in zip(model.graph.output, run(model, feeds), run(made, feeds), strict=True):
        if not isinstance(wanted, np.ndarray):
            if repr(wanted) != repr(got):
                yield f"{value.name}: other values"
        elif (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
            yield f"{value.name}: {got.dtype}{got.shape} in place of {wanted.dtype}{wanted.shape}"
        elif wanted.dtype.kind in "OSU":
            if not np.array_equal(wanted, got):
                yield f"{value.name}: other texts"
        elif finite and wanted.dtype.kind == "f" and not np.isfinite(wanted.astype(np.float64)).all():
            continue
        elif not (error := compare(got, wanted)[0]) <= tolerance_of(wanted.dtype.name, precisions.get(value.name, "")):
            if is_of_floats(wanted) and in_doubles.agree(feeds, value.name, wanted, got):
                continue
            yield f"{value.name}: relative error {error:.2e}"


def with_special_values(feeds: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Inputs some of whose elements are special values."""
    random = np.random.default_rng(seed)
    made = {}
    for name, array in feeds.items():
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                special = np.asarray(random.choice(SPECIAL, array.shape)).astype(array.dtype)
            array = np.where(random.random(array.shape) < SHARE, special, array).astype(array.dtype)
        made[name] = array
    return made


def run(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    """The outputs of a model as it is written."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


if __name__ == "__main__":
    sys.exit(main())
