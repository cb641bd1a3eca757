"""Probes in plan files come back as they were, and what cannot be is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.probe import Rows
from smartmem_rules.runtime.format.container import PlanFileError
from smartmem_rules.runtime.plan_file import load_plan, save_plan
from tests.emit.kernel_cases import CASES
from tests.probes.asked import asking
from tests.runtime.format.files import Change, resealed


@pytest.fixture(scope="module")
def plan() -> Plan:
    return asking(CASES["panel"])


@pytest.fixture
def file(plan: Plan, tmp_path: Path) -> Path:
    save_plan(plan, tmp_path / "a.plan")
    return tmp_path / "a.plan"


def same(left: Rows | None, right: Rows | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.shape == right.shape and np.array_equal(left.array(), right.array())


def test_they_come_back(plan: Plan, file: Path) -> None:
    found = load_plan(file)
    assert found.unasked == plan.unasked
    assert [one.spares for one in found.enqueues] == [one.spares for one in plan.enqueues]
    assert len(found.probes) == len(plan.probes) > 0
    for left, right in zip(found.probes, plan.probes, strict=True):
        assert left.launches == right.launches
        assert [(f.kind, f.exponent) for f in left.fillings] == [(f.kind, f.exponent) for f in right.fillings]
        assert all(same(a.rows, b.rows) for a, b in zip(left.fillings, right.fillings, strict=True))
        assert [(a.argument, a.bound) for a in left.answers] == [(a.argument, a.bound) for a in right.answers]
        assert all(same(a.rows, b.rows) for a, b in zip(left.answers, right.answers, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.probes[0].launches.append(99),
        lambda index: index.probes[0].ClearField("launches"),
        lambda index: index.probes[0].fillings.pop(),
        lambda index: setattr(index.probes[0].answers[0], "argument", 50),
        lambda index: setattr(index.probes[0].fillings[0], "kind", 9),
        lambda index: setattr(index.probes[0].answers[0].rows, "width", 0),
        lambda index: setattr(index.probes[0].answers[0].rows, "count", 1 << 30),
        lambda index: setattr(index.probes[0].answers[0].rows, "element", 12),
        lambda index: setattr(index.probes[0].answers[0].rows.different, "offset", 1 << 40),
        lambda index: setattr(index.probes[0].answers[0].rows.different, "size", 1 << 40),
        lambda index: setattr(index.probes[0].answers[0].rows.numbers, "sum", 7),
        lambda index: setattr(index.launches[0].spares[0], "text", 99),
    ],
)
def test_what_cannot_be_is_refused(file: Path, change: Change) -> None:
    file.write_bytes(resealed(file.read_bytes(), change))
    with pytest.raises(PlanFileError):
        load_plan(file)
