"""What the judge says of models whose results nobody can foresee."""

from __future__ import annotations

import numpy as np
from onnx import helper

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.judge import NO_REFERENCE, judge
from tests.fuzzing.expected.judged import model_of


def test_drawn_numbers_have_no_reference() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    verdict = judge(Case("random", model_of(nodes, (2, 3)), {"x": np.ones((2, 3), np.float32)}, Mode()))
    assert (verdict.kind, "draws numbers of its own" in verdict.detail) == (NO_REFERENCE, True)
