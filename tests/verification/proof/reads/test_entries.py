"""Which definitions keep the entries of their lists apart, and what is refused although one entry alone is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.language.parsing.parser import parse_file
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.proof.reads.entries import acts_by_entry
from smartmem_rules.verification.reads import definitions, prove

SLICE = """
function first_of(starts, S) = [clamp({start}, 0, S[j] - 1) for j in rank(S)]
operator Part<T: any>(x: T[*S], const starts: ints, const axes: ints?) -> y: T[*put(S, A, {extents})] {{
    internal
    let A     = if present(axes) then wrap(axes, rank(S)) else range(rank(starts))
    let begin = first_of(starts, take(S, A))
    y[*i] = x[*put(i, A, {index})]
}}
"""
GIVEN_AXES = ", const axes: ints?"
WRAPPED_AXES = "if present(axes) then wrap(axes, rank(S)) else range(rank(starts))"
RIGHT = {"start": "starts[j]", "extents": "take(S, A) - begin", "index": "take(i, A) + begin"}


def _file(folder: Path, **changes: str) -> Path:
    file = folder / "own.smr"
    file.write_text(SLICE.format(**{**RIGHT, **changes}))
    return file


def _unchecked(folder: Path, change: dict[str, str]) -> tuple[ast.Operator, dict[str, ast.Function]]:
    """A definition that no rule base takes, and the functions of its file."""
    module = parse_file(_file(folder, **change))
    (operator,) = (item for item in module.items if isinstance(item, ast.Operator))
    return operator, {item.name: item for item in module.items if isinstance(item, ast.Function)}


def test_only_slices_keep_entries_apart() -> None:
    base = load_rules()
    assert {o.name for o in definitions(base) if acts_by_entry(o, base.functions)} == {"Slice"}


@pytest.mark.parametrize("axes", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_definition_of_a_file_is_proved_by_one_entry(tmp_path: Path, axes: bool) -> None:
    pytest.importorskip("z3")
    file = _file(tmp_path)
    if not axes:  # all their lists take many ways
        file.write_text(file.read_text().replace(GIVEN_AXES, "").replace(WRAPPED_AXES, "range(rank(starts))"))
    base = load_rules([file])
    (operator,) = base.operators["Part"]
    assert acts_by_entry(operator, base.functions)
    assert prove(base, operator).proved == 1


@pytest.mark.parametrize(
    "change",
    [
        {"start": "starts[rank(S) - 1]"},
        {"start": "starts[0]"},
        {"start": "starts[j] + j"},
        {"start": "sum_of(starts)"},
        {"start": "min(starts)"},
        {"start": "S[0]"},
        {"index": "take(i, A) + begin + rank(starts) - 1"},
        {"index": "take(i, A) + begin + A"},
        {"index": "take(i, A) + reverse(begin)"},
        {"index": "take(i, [0]) + begin"},
        {"index": "begin[:1]"},
        {"extents": "take(S, A) - begin + (S[0] - S[0])"},
        {"extents": "reverse(take(S, A) - begin)"},
    ],
    ids=str,
)
def test_what_may_look_at_other_entries_is_not_taken_for_one(tmp_path: Path, change: dict[str, str]) -> None:
    operator, functions = _unchecked(tmp_path, change)
    assert not acts_by_entry(operator, functions)


@pytest.mark.parametrize("change", [{"index": "take(i, A) + begin + 1"}, {"extents": "take(S, A)"}], ids=str)
def test_a_read_that_leaves_its_operand_is_not_proved(tmp_path: Path, change: dict[str, str]) -> None:
    pytest.importorskip("z3")
    base = load_rules([_file(tmp_path)])
    operator, functions = _unchecked(tmp_path, change)
    assert acts_by_entry(operator, functions)
    assert prove(base, operator, 2000).proved == 0
    with pytest.raises(LanguageError, match=r"for example at Part\(\w+\[\d+\]; starts = \[\d\]"):
        load_rules([_file(tmp_path, **change)])
