"""What a plan knows of its making comes back from its file, and reports show all of it."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.api import plan_only
from smartmem_rules.explanation.report import explain, report_data
from smartmem_rules.runtime.plan_file import load_plan, save_plan
from smartmem_rules.statistics import Statistics, relative_gap
from tests.emit.kernel_cases import Node, model


def _model() -> bytes:
    nodes: list[Node] = [
        ("Transpose", "x", "t", {"perm": [0, 2, 1]}),
        ("MatMul", "t w", "p"),
        ("Transpose", "p", "q", {"perm": [0, 2, 1]}),
        ("Softmax", "q", "y"),
    ]
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, 8, 6)).astype(np.float32)}
    weights = {"w": rng.standard_normal((8, 12)).astype(np.float32)}
    return bytes(model(nodes, feeds, "y", weights).SerializeToString())


@pytest.mark.parametrize(
    ("level", "device", "dtype"),
    [("smartmem", "adreno_740", "float16"), ("smartmem", "pocl", "float32"), ("none", "pocl", "float32")],
)
def test_the_statistics_come_back_from_a_file(tmp_path: Path, level: str, device: str, dtype: str) -> None:
    plan = plan_only(_model(), level=level, device=device, dtype=dtype)
    save_plan(plan, tmp_path / "a.plan")
    loaded = load_plan(tmp_path / "a.plan")
    for part in fields(Statistics):
        assert getattr(loaded.statistics, part.name) == getattr(plan.statistics, part.name), part.name
    assert Statistics.of(json.loads(json.dumps(plan.statistics.data()))) == plan.statistics
    assert report_data(loaded, None, None) == report_data(plan, None, None)
    node = next(iter(plan.statistics.model.nodes))
    assert explain(loaded, node) == explain(plan, node)


def test_a_level_without_rules_says_so() -> None:
    report = report_data(plan_only(_model(), level="none", device="pocl"), None, None)
    assert report["extraction"] == {"status": "skipped", "gap": 0.0}
    assert report["saturation"] is None
    assert "joint" not in report["layouts"]


def test_roundings_of_sums_are_no_gap() -> None:
    assert relative_gap(1.0, 1.0 - 2e-16) == 0.0
    assert relative_gap(1.0, 1.5) == 0.0
    assert relative_gap(0.0, -1.0) == 0.0
    assert relative_gap(4.0, 3.0) == 0.25
