"""Reads that stay inside for all operands and attributes are proved; one that may leave never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase, collect, load_modules
from smartmem_rules.verification.proof.reads.open_reads import ReadProofs, prove_reads
from smartmem_rules.verification.proof.reads.written_reads import reads_of

z3 = pytest.importorskip("z3")


def proofs_of(tmp_path: Path, definition: str, most: int = 3000) -> ReadProofs:
    file = tmp_path / "own.smr"
    file.write_text(f"operator Probe<T: float>{definition}\n")
    base: RuleBase = collect(load_modules([file]), load_modules(sorted(rules_path().rglob("*.smr"))))
    (operator,) = base.operators["Probe"]
    return prove_reads(base, operator, z3, most)


PROVED = (
    "(x: T[N, K], w: T[K, M]) -> y: T[N, M] { internal y[n, m] = sum(k < K) x[n, k] * w[k, m] }",
    "(x: T[*S], b: T[*R]) -> y: T[*S] { internal require R == S y[*i] = x[*i] + b[*i] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = x[N - 1 - i] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = if i > 0 then x[i - 1] else x[0] }",
    "(x: T[N]) -> y: T[N] { internal scan h[t < N] = x[t] + (if t == 0 then 0 else h[t - 1]) y[i] = h[i] }",
    "(x: T[*S]; perm: ints) -> y: T[*permute(S, perm)] { internal view y[*i] = x[*unpermute(i, perm)] }",
    "(x: T[N]; by: int) -> y: T[N] { internal require 0 <= by and by < N y[i] = if i < by then x[i] else x[i - by] }",
    "(x: T[N]; by: int) -> y: T[N] { internal require by > 0 y[i] = x[i // by] }",
    "(x: T[N], b: T[M]?) -> y: T[N] { internal require not present(b) or M == N"
    " y[i] = x[i] + (if present(b) then b[i] else 0) }",
    '(x: T[N]; mode: string = "a", alpha: float = 1.0) -> y: T[N] { internal'
    ' y[i] = if mode == "a" and x[i] > alpha then alpha * x[i] else x[N - 1 - i] }',
    "(xs...: T[*S]) -> y: T[*shape(xs[0])] { internal"
    " require [1 for j in count(xs) if shape(xs[j]) != shape(xs[0])] == [] y[*i] = sum(j in count(xs)) xs[j][*i] }",
    "(x: T[*S], at: int64[*Q, K]) -> y: T[*Q, *S[K:]] { internal require K <= rank(S)"
    " y[*i] = x[*[at[*i[:rank(Q)], j] for j in K], *i[rank(Q):]] }",
)
LEFT = (
    "(x: T[N, K], w: T[N, K]) -> y: T[N, N] { internal y[n, m] = sum(k < K) x[n, k] * w[k, m] }",
    "(x: T[N]) -> y: T[N] { internal y[i] = x[i + 1] }",
    "(x: T[N], b: T[M]) -> y: T[N] { internal y[i] = x[i] + b[i] }",
    "(x: T[N]; by: int) -> y: T[N] { internal y[i] = x[i + by] }",
    "(x: T[N]; by: int) -> y: T[N] { internal require 0 <= by y[i] = if i < by then x[i] else x[i - by + 1] }",
    "(x: T[N]; by: int) -> y: T[N] { internal require by >= 0 and by <= N y[i] = if i < by then x[i + 1] else x[i] }",
    "(x: T[*S]; perm: ints) -> y: T[*permute(S, perm)] { internal y[*i] = x[*permute(i, perm)] }",
    "(x: T[N]) -> y: T[N] { internal scan h[t < N] = x[t] + (if t == 0 then 0 else h[t]) y[i] = h[i] }",
    # the requirement holds only where the operand is there
    "(x: T[N], b: T[M]?) -> y: T[N] { internal y[i] = x[i] + (if present(b) then b[i] else 0) }",
    "(x: T[N], b: T[M]?) -> y: T[N] { internal require present(b) or M == N"
    " y[i] = x[i] + (if present(b) then b[i] else 0) }",
    # only one of the words is safe
    "(x: T[N]; mode: string = \"a\") -> y: T[N] { internal y[i] = if mode == \"a\" then x[i] else x[i + 1] }",
    "(x: T[N]; alpha: float = 1.0) -> y: T[N] { internal y[i] = if x[i + 1] > alpha then alpha else x[i] }",
    # a step of a list that a default does not have
    "(x: T[N, M]; s: ints = [1, 1]) -> y: T[N, M] { internal y[i, j] = x[i * s[0], j] }",
    "(x: T[*S]; axis: int = 0) -> y: T[*S] { internal let a = wrap(axis, rank(S))"
    " y[*i] = x[*put(i, [a], [S[0] - 1 - i[a]])] }",
    "(xs...: T[*S]) -> y: T[*shape(xs[0])] { internal y[*i] = sum(j in count(xs)) xs[j][*i] }",
    "(x: T[*S], at: int64[*Q, K]) -> y: T[*Q, *S[K:]] { internal require K <= rank(S)"
    " y[*i] = x[*[at[*i[:rank(Q)], j + 1] for j in K], *i[rank(Q):]] }",
    "(x: T[N], at: int64[M]) -> y: T[N] { internal y[i] = x[at[i]] }",
)  # fmt: skip


@pytest.mark.parametrize("definition", PROVED)
def test_reads_that_stay_inside_are_proved(tmp_path: Path, definition: str) -> None:
    proofs = proofs_of(tmp_path, definition)
    assert proofs.total
    assert proofs.proved == proofs.total, proofs.left


@pytest.mark.parametrize("definition", LEFT)
def test_a_read_that_may_leave_is_not_proved(tmp_path: Path, definition: str) -> None:
    proofs = proofs_of(tmp_path, definition)
    assert proofs.proved < proofs.total


def test_nothing_is_proved_where_cases_are_left_out(tmp_path: Path) -> None:
    proofs = proofs_of(
        tmp_path, "(x: T[*S], b: T[*R]) -> y: T[*S] { internal require R == S y[*i] = x[*i] + b[*i] }", 3
    )
    assert proofs.total
    assert not proofs.proved


def test_a_branch_that_nothing_reaches_is_not_proved(tmp_path: Path) -> None:
    proofs = proofs_of(tmp_path, "(x: T[N]) -> y: T[N] { internal y[i] = if N < 1 then x[i + 1] else x[i] }")
    assert len(proofs.total) == 2
    assert len(proofs.proved) == 1


def test_all_reads_without_else_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "own.smr"
    file.write_text(
        "operator Probe<T: float>(x: T[N], at: int64[N]) -> y: T[N] { internal"
        " y[i] = x[at[i]] + (x[i + 1] else 0) + (if x[i] > 0 then 1 else 0) }\n"
    )
    base = collect(load_modules([file]), load_modules(sorted(rules_path().rglob("*.smr"))))
    (operator,) = base.operators["Probe"]
    assert len(reads_of(operator)) == 3
