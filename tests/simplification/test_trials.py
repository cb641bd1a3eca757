"""Generated models compute the same when they are simplified, on special values too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from smartmem_rules.fuzzing.case import Case
from smartmem_rules.fuzzing.sources.by_name import SOURCES
from smartmem_rules.runtime.feeds import compare
from smartmem_rules.simplification.checking import is_of_floats, tolerance_of
from smartmem_rules.simplification.in_doubles import InDoubles
from smartmem_rules.simplification.options import Options
from smartmem_rules.simplification.rewriting.region import NothingToDo
from smartmem_rules.simplification.rewriting.simplifying import seen_by_rules, simplified
from smartmem_rules.simplification.types import precisions_of
from tests.simplification.models import run

SAMPLE = 6
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -3e38)


def is_valid(case: Case) -> bool:
    """Whether ONNX's checker and ONNX Runtime take a model, and agree about the shapes of its results."""
    try:
        onnx.checker.check_model(case.model, full_check=True)
        run(case.model, case.feeds)
    except Exception:
        return False
    return True


def with_special_values(feeds: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Inputs of which a third of the numbers are special ones."""
    random = np.random.default_rng(seed)
    made = {}
    for name, array in feeds.items():
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                special = np.asarray(random.choice(SPECIAL, array.shape)).astype(array.dtype)
            array = np.where(random.random(array.shape) < 0.3, special, array).astype(array.dtype)
        made[name] = array
    return made


def differences(case: Case, made: onnx.ModelProto, feeds: dict[str, np.ndarray], finite: bool) -> list[str]:
    """The outputs that differ; with `finite` only those whose numbers are finite are compared."""
    found = []
    names = [value.name for value in case.model.graph.output]
    precisions = precisions_of(case.model)
    before, in_doubles = run(case.model, feeds), InDoubles(case.model)
    for name, wanted, got in zip(names, before, run(made, feeds), strict=True):
        if (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
            found.append(f"{name}: {got.dtype}{got.shape} in place of {wanted.dtype}{wanted.shape}")
            continue
        if finite and wanted.dtype.kind == "f" and not np.isfinite(wanted.astype(np.float64)).all():
            continue
        error = compare(got, wanted)[0]
        close = error <= tolerance_of(wanted.dtype.name, precisions.get(name, ""))
        if not close and not (is_of_floats(wanted) and in_doubles.agree(feeds, name, wanted, got)):
            found.append(f"{name}: relative error {error}")
    return found


@pytest.mark.parametrize("source", ["drawn", "small"])
def test_generated_models_compute_the_same(source: str, all_cases: bool) -> None:
    """`SOURCES[source](seed)` draws a model that is named here again."""
    judged = 0
    for seed in range(SAMPLE * (80 if all_cases else 1)):
        case = SOURCES[source](seed)
        if not is_valid(case):
            continue
        for exact in (False, True):
            try:
                options = Options(exact=exact)
                made = simplified(seen_by_rules(case.model, None, options), options).model
            except NothingToDo:
                continue
            onnx.checker.check_model(made)
            assert differences(case, made, dict(case.feeds), finite=not exact) == [], (source, seed, exact)
            if exact:  # rules that keep every bit keep NaN and infinities
                special = with_special_values(dict(case.feeds), seed)
                assert differences(case, made, special, finite=False) == [], (source, seed, "special values")
            judged += 1
    assert judged >= SAMPLE
