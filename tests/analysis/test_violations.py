"""Reads that leave their tensor are shown at small operands."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from smartmem_rules.analysis.violations import smallest_violation
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase, collect, load_modules, load_rules


@cache
def shipped() -> RuleBase:
    return load_rules()


def own(tmp_path: Path, text: str) -> RuleBase:
    """A rule base that nobody has checked."""
    file = tmp_path / "own.smr"
    file.write_text(text)
    return collect(load_modules([file]), load_modules(sorted(rules_path().rglob("*.smr"))))


INSIDE = (
    "(x: T[N, K], w: T[K, M]) -> y: T[N, M] { internal y[n, m] = sum(k < K) x[n, k] * w[k, m] }",
    "(x: T[*S], b: T[*R]) -> y: T[*S] { internal require R == S y[*i] = x[*i] + b[*i] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = x[N - 1 - i] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = if i > 0 then x[i - 1] else x[0] }",
    "(x: T[N]) -> y: T[N] { internal scan h[t < N] = x[t] + (if t == 0 then 0 else h[t - 1]) y[i] = h[i] }",
)
OUTSIDE = (
    "(x: T[N, K], w: T[N, K]) -> y: T[N, N] { internal y[n, m] = sum(k < K) x[n, k] * w[k, m] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = x[i + 1] }",
    "(x: T[N], b: T[M]) -> y: T[N] { internal y[i] = x[i] + b[i] }",
)


@pytest.mark.parametrize("definition", INSIDE)
def test_reads_that_stay_inside_are_not_shown(tmp_path: Path, definition: str) -> None:
    base = own(tmp_path, f"operator Probe<T: float>{definition}\n")
    (operator,) = base.operators["Probe"]
    assert smallest_violation(base, operator) is None


@pytest.mark.parametrize("definition", OUTSIDE)
def test_reads_that_leave_are_shown(tmp_path: Path, definition: str) -> None:
    base = own(tmp_path, f"operator Probe<T: float>{definition}\n")
    (operator,) = base.operators["Probe"]
    found = smallest_violation(base, operator)
    assert found is not None
    assert max(extent for operand in found.operands if operand is not None for extent in operand.shape) <= 2


def test_no_built_in_definition_reads_outside() -> None:
    for overloads in shipped().operators.values():
        for operator in overloads:
            found = smallest_violation(shipped(), operator, attempts=40)
            assert found is None, f"{operator.name}{found}: {found and found.message}"
