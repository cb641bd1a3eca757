"""`simplify`: a model in, a checked model out, or the model itself where nothing better was found."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import onnx

from smartmem_rules.graph.loading import ModelSource, load_model
from smartmem_rules.graph.weights import with_weights
from smartmem_rules.simplification.checking import Checking
from smartmem_rules.simplification.early import may_run_early
from smartmem_rules.simplification.files import beside, copy_unchanged, put, write_model
from smartmem_rules.simplification.in_place import Aside, read_in_place
from smartmem_rules.simplification.options import Options, SimplifyError
from smartmem_rules.simplification.report import Report

if TYPE_CHECKING:
    from smartmem_rules.simplification.rewriting.simplifying import Simplified

_NAME = "model.onnx"


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
            report, found = _simplified(model, folder, source, place, target.name, options, aside)
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
        report, found = _simplified(model, folder, Path(path), place, _NAME, options)
    return with_weights(model if found is None else found.model, folder), report


def _simplified(
    model: onnx.ModelProto,
    folder: Path | None,
    path: Path,
    place: Path,
    name: str,
    options: Options,
    aside: Aside | None = None,
) -> tuple[Report, Simplified | None]:
    with Checking(path, model, place) as checking:
        if may_run_early(model):
            checking.begin({})
        from smartmem_rules.simplification.attempts import Task, attempted  # start-up time: those runs take as long

        return attempted(Task(model, folder, place, name, aside), options, checking)
