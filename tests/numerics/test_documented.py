"""The tables of docs/numerics.md hold for the rules, for ONNX Runtime where it is followed, and for all kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bench.numerics import CASES, TABLES, ULPS, Array, Case, by_onnxruntime, feeds_of, folded, model_of, text
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.numerics.device_functions import ulps
from tests.numerics.test_elementary import FUNCTIONS
from tests.plan.running import Mode, prepare

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"
BUILDS = [
    (Mode(), False),
    (Mode("none"), True),
    (Mode(device="adreno_740", memory="image"), False),
    (Mode(device="nvidia"), False),
]


def rows(name: str) -> list[list[str]]:
    """The cells of a table of the page."""
    found = re.search(rf"<!-- table {name} -->\n(.*?)<!-- end -->", PAGE.read_text("utf-8"), re.S)
    assert found, f"the page has no table {name}"
    return [[cell.strip().strip("`") for cell in line.strip(" |").split(" | ")] for line in found[1].splitlines()[2:]]


@pytest.mark.parametrize("topic", [name for name in TABLES if name not in ULPS])
def test_tables_are_what_the_rules_compute(topic: str) -> None:
    cases = [case for case in CASES if case.topic == topic]
    written = {row[0]: row[-1] for row in rows(topic)}
    computed = {case.label: " ; ".join(map(text, results)) for case, results in zip(cases, folded(cases), strict=True)}
    assert written == computed, "python bench/numerics.py --write docs/numerics.md"


def test_bounds_are_those_that_are_tested() -> None:
    written = {row[0]: (row[2].split(" ")[0], row[4]) for row in rows("ulps")}
    assert written == {name: (f"{f.bound:g}", f"{f.double:g}") for name, f in FUNCTIONS.items()}
    elsewhere = {row[0]: (row[2].split(" ")[0], row[4]) for row in rows("ulps_elsewhere")}
    assert elsewhere == {name: (f"{f.elsewhere:g}",) * 2 for name, f in FUNCTIONS.items()}


def test_where_onnxruntime_is_followed(all_cases: bool) -> None:
    pytest.importorskip("onnxruntime")
    followed = [case for case in CASES if case.alike][:: 1 if all_cases else 4]
    differing = []
    for case, results in zip(followed, folded(followed), strict=True):
        theirs, ours = by_onnxruntime(case), " ; ".join(map(text, results))
        if _unsigned(theirs) != _unsigned(ours):
            differing.append(f"{case.label}: {theirs}, here {ours}")
    assert differing == []


def _unsigned(shown: str) -> str:
    """What a table shows, its zeros without signs."""
    return " ".join("0" if word == "-0" else word for word in shown.split(" "))


def _same(found: Array, wanted: Array) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype.kind != "f":
        return np.array_equal(found, wanted)
    return bool(np.all((ulps(found, wanted.astype(np.float64), found.dtype.name) <= 64) | _tiny(found, wanted)))


def _tiny(found: Array, wanted: Array) -> Array:
    """Kernels' exponential function ends at 1.7e-38."""
    return np.asarray((np.abs(found) <= 1.7e-38) & (np.abs(wanted) <= 1.7e-38))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("mode", "debug"), BUILDS, ids=lambda value: str(value))
def test_kernels_agree_with_constants(mode: Mode, debug: bool) -> None:
    """One node on a constant and on an input gives the same answer."""
    plan, executor = prepare(model_of(CASES, False), mode)
    if debug:
        executor = Executor(plan, choose(), debug=True)
    results = executor.run(feeds_of(CASES))
    wrong = []
    for number, (case, wanted) in enumerate(zip(CASES, folded(CASES), strict=True)):
        found = [results[f"o{number}_{place}"] for place in range(case.outputs)]
        if not all(map(_same, found, wanted)):
            wrong.append(_shown(case, found, wanted))
    assert wrong == []


def _shown(case: Case, found: list[Array], wanted: list[Array]) -> str:
    return f"{case.label}: {' ; '.join(map(text, found))} on the device, {' ; '.join(map(text, wanted))} as a constant"
