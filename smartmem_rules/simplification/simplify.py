"""`simplify`: a model in, a checked model out, or the model itself where nothing better was found."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from smartmem_rules.collector import no_collections, return_free_memory
from smartmem_rules.egraph.saturation import EngineError
from smartmem_rules.extraction.problem import Infeasible
from smartmem_rules.graph.loading import ModelSource, load_model
from smartmem_rules.graph.weights import graph_tensors, is_external, with_weights
from smartmem_rules.simplification.checking import Checker, DifferentError
from smartmem_rules.simplification.encoding import is_inside, size_of_files
from smartmem_rules.simplification.files import beside, copy_unchanged, put, write_model
from smartmem_rules.simplification.in_place import Aside, read_in_place
from smartmem_rules.simplification.opsets import in_opset
from smartmem_rules.simplification.options import Options, SimplifyError
from smartmem_rules.simplification.region import NothingToDo
from smartmem_rules.simplification.report import Check, Report, counts_of
from smartmem_rules.simplification.simplifying import Simplified, opset_of, seen_by_rules, simplified
from smartmem_rules.writing.views import NotExpressible

_NAME = "model.onnx"
_MEASURED = frozenset(
    {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
)
"""Element types of which any value is one that an input may have."""


def simplify_file(source: Path, target: Path, options: Options) -> Report:
    """Simplify the model of a file into another file, or the same.

    Nothing is written unless ONNX Runtime gives the same outputs for both models on random inputs; a result that is
    no better or that differs is not taken, and the input is written as it is.

    Raises:
        SimplifyError: the model cannot be simplified, or a file cannot be written.
        CheckError: ONNX Runtime does not run the input.
        GraphError: the input is damaged.
        LimitError: it exceeds a limit.
        LanguageError: a rule file has errors.
    """
    # ONNX's converter takes whole models only
    model, folder = read_in_place(source) if options.opset is None else load_model(source)
    with beside(target) as place:
        try:
            aside = Aside(place / "computed")
            report, found = _simplified(model, folder, source, place, options, target.name, aside)
            if found is None:
                copy_unchanged(source, model, place, target)
            else:
                put(place, target.name, target)
        except OSError as error:
            raise SimplifyError(f"{target}: it cannot be written ({error.strerror or error})") from error
    return report


def simplify_model(source: ModelSource, options: Options) -> tuple[onnx.ModelProto, Report]:
    """The simplified model with all its data, or the model itself; the exceptions are those of `simplify_file`."""
    model, folder = load_model(source)
    with TemporaryDirectory(prefix="smartmem-simplify-") as name:
        place = Path(name)
        path = source if isinstance(source, str | Path) else write_model(model, folder, place, "given.onnx")
        report, found = _simplified(model, folder, Path(path), place, options, _NAME)
    return with_weights(model if found is None else found.model, folder), report


def _simplified(
    model: onnx.ModelProto,
    folder: Path | None,
    path: Path,
    place: Path,
    options: Options,
    name: str,
    aside: Aside | None = None,
) -> tuple[Report, Simplified | None]:
    """Simplify, write the result into a folder and check it; with rules that keep every bit where it differs."""
    started = time.perf_counter()
    reason, differed = "", False
    given = in_opset(model, options.opset)
    with ThreadPoolExecutor(1) as background:
        checking = background.submit(Checker, path, model, {}) if _may_run_early(model) else None
        for tried in (options, replace(options, exact=True)):
            try:
                with no_collections():
                    seen = seen_by_rules(given, folder, tried)
                    wait([checking] if checking else [])  # the e-graph and ONNX Runtime's tensors would add up
                    found = simplified(seen, tried, aside)
            except (NothingToDo, EngineError, Infeasible, NotExpressible) as error:
                reason = reason or str(error)
                break
            if given is model and not found.is_better:
                reason = reason or "no form with fewer nodes or a smaller file was found"
                break
            checking = checking or background.submit(Checker, path, model, seen.bounds)
            del seen
            return_free_memory()
            checker = checking.result()
            try:
                check = checker.check(write_model(found.model, folder, place, name))
            except DifferentError as error:
                reason, differed = f"the simplified model differs: {error}", True
                if found.relaxes:
                    continue
                break
            if given is not model:
                found = replace(found, before=counts_of(model, size_of_files(model)))
            return _report(found, tried, check, time.perf_counter() - started), found
    return _unchanged(model, options, reason, differed, time.perf_counter() - started), None


def _may_run_early(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime may run a model while it is imported.

    That is so where no input holds indices, of which only the imported model tells how large they may be, and where the
    import reads no data files, which ONNX Runtime holds at that time.
    """
    held = {tensor.name for tensor in model.graph.initializer}
    inputs = (value.type.tensor_type.elem_type for value in model.graph.input if value.name not in held)
    if not all(code in _MEASURED for code in inputs):
        return False
    return all(is_inside(tensor) or not is_external(tensor) for _, tensor in graph_tensors(model.graph))


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
