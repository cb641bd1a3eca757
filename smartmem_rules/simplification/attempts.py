"""Attempts to simplify a model: with all rules, then with those that keep every bit; each result is checked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from smartmem_rules.collector import no_collections, return_free_memory
from smartmem_rules.egraph.saturation import EngineError
from smartmem_rules.extraction.problem import Infeasible
from smartmem_rules.graph.model import GraphError
from smartmem_rules.records import dataclass
from smartmem_rules.simplification.checking import Checking, DifferentError, DifferentIfEmptyError
from smartmem_rules.simplification.encoding import size_of_files
from smartmem_rules.simplification.files import write_model
from smartmem_rules.simplification.in_place import Aside
from smartmem_rules.simplification.opsets import in_opset
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.report import Check, Report, counts_of
from smartmem_rules.simplification.rewriting.region import NothingToDo
from smartmem_rules.simplification.rewriting.simplifying import Simplified, opset_of, seen_by_rules, simplified
from smartmem_rules.writing.views import NotExpressible


@dataclass(frozen=True)
class Task:
    """A model, and where what is made of it is written.

    Attributes:
        folder: of the model's data files.
        place: a folder for the result.
        name: the result's file name.
        aside: where large computed weights are written meanwhile; None if the result holds them.
    """

    model: onnx.ModelProto
    folder: Path | None
    place: Path
    name: str
    aside: Aside | None


def attempted(task: Task, options: Options, checking: Checking) -> tuple[Report, Simplified | None]:
    """Simplify, write the result into a folder and check it; where it differs, attempt what relies on less.

    The exceptions are those of `simplify_file`.
    """
    started = time.perf_counter()
    model, reason, differed = task.model, "", False
    given = in_opset(model, options.opset)
    attempts = [_Attempt(options, open_extents=True)]
    for attempt in attempts:
        try:
            with no_collections():
                found = _simplified(given, task, attempt, checking)
        except (NothingToDo, EngineError, Infeasible, NotExpressible) as error:
            reason = reason or str(error)
            break
        if given is model and not found.is_better:
            reason = reason or "no form with fewer nodes or a smaller file was found"
            break
        return_free_memory()
        try:
            check = checking.checker().check(write_model(found.model, task.folder, task.place, task.name))
        except DifferentIfEmptyError as error:
            reason, differed = f"the simplified model differs: {error}", not attempt.open_extents
            attempts += [replace(attempt, open_extents=False)] if attempt.open_extents else []
        except DifferentError as error:
            reason, differed = f"the simplified model differs: {error}", True
            exact = replace(attempt, options=replace(attempt.options, exact=True))
            attempts += [exact] if found.relaxes else []
        else:
            if given is not model:
                found = replace(found, before=counts_of(model, size_of_files(model)))
            return _report(found, attempt.options, check, time.perf_counter() - started), found
    return _unchanged(model, options, reason, differed, time.perf_counter() - started), None


@dataclass(frozen=True)
class _Attempt:
    """The rules of an attempt, and whether they see tensors some extents of which are known at run time only."""

    options: Options
    open_extents: bool


def _simplified(given: onnx.ModelProto, task: Task, attempt: _Attempt, checking: Checking) -> Simplified:
    """Simplify a model for each value of its open extents, or with what has open extents as it is if that fails."""
    if attempt.open_extents:
        try:
            found = _seen(given, task, attempt.options, checking, open_extents=True)
            if found.is_better or not found.has_open_extents:
                return found
        except (EngineError, GraphError, Infeasible, NotExpressible):
            pass  # the attempt that does not see open extents says what is wrong with the model
    return _seen(given, task, attempt.options, checking, open_extents=False)


def _seen(
    given: onnx.ModelProto, task: Task, options: Options, checking: Checking, *, open_extents: bool
) -> Simplified:
    """Simplify a model whose run by ONNX Runtime has begun when this returns.

    What ONNX Runtime does not run stays as it is. Most models run as a whole, so that is found out afterwards.
    """
    left_out: Mapping[str, str] = {}
    while True:
        seen = seen_by_rules(given, task.folder, options, left_out, open_extents)
        checking.wait()  # the e-graph and ONNX Runtime's tensors would add up
        found = simplified(seen, options, task.aside)
        seen.region.forget_weights()
        if not found.is_better and given is task.model:
            return found
        checking.begin(seen.bounds)
        left_out = checking.checker().left_out
        if left_out.keys() <= seen.kept_results:
            return found


def _report(found: Simplified, options: Options, check: Check, seconds: float) -> Report:
    return Report(
        changed=True,
        reason="",
        differed=False,
        before=found.before,
        after=found.after,
        opset=found.opset,
        rules=found.uses,
        added=found.added,
        kept=found.kept,
        refused=found.refused,
        exact=options.exact,
        selection=found.selection,
        stopped=found.stopped,
        check=check,
        seconds=seconds,
    )


def _unchanged(model: onnx.ModelProto, options: Options, reason: str, differed: bool, seconds: float) -> Report:
    counts = counts_of(model, size_of_files(model))
    return Report(
        changed=False,
        reason=reason,
        differed=differed,
        before=counts,
        after=counts,
        opset=opset_of(model),
        exact=options.exact,
        seconds=seconds,
    )
