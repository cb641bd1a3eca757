"""The text of a kernel of each template in each memory, to be read; `--update-golden` writes it anew.

PoCL runs each of them, so that no golden text is one that an OpenCL compiler refuses, or that computes something else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.emit.emit import CONTRACTIONS, FORMS
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.executor import Executor
from tests.emit.kernel_cases import CASES, bodies, launched

GOLDEN = Path(__file__).parent / "golden"
JOINT = {"chain", "beside", "ordered"}
"""The forms of launches of several kernels."""


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden(name: str, update_golden: bool) -> None:
    case = CASES[name]
    plan = case.plan()
    assert list(map(launched, plan.launches)) == case.templates.split()
    text = bodies(plan)
    path = GOLDEN / f"{name}.cl"
    if update_golden:
        path.write_text(text)
    assert path.read_text() == text, f"{path} differs; `pytest --update-golden` writes it anew"
    assert ("_imagef(" in text) == (case.memory == "image")
    if not case.holds_ptx:
        executor = Executor(plan, choose())
        executor.poison()
        found = executor.run(case.feeds)
        for output, expected in zip(plan.outputs, ReferenceEvaluator(case.proto).run(None, case.feeds), strict=True):
            # sums of at most 288 products; filtered windows round a little more
            np.testing.assert_allclose(found[output], expected, rtol=0, atol=2e-5 * max(1.0, np.abs(expected).max()))


def test_every_template_has_a_golden_text() -> None:
    shown = {template for case in CASES.values() for template in case.templates.split()}
    assert shown == {*CONTRACTIONS, *FORMS, *JOINT}


def test_every_golden_text_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


def test_equal_models_have_equal_kernels() -> None:
    case = CASES["reduction_buffer"]
    assert bodies(case.plan()) == bodies(case.plan())
