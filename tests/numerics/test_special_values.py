"""docs/numerics_by_operator.md says what the operators give at special values, and why others give something else."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.operators.test_node_suite import published

pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))  # whose scripts import one another by their names
special_reasons, special_runs, special_values = (
    importlib.import_module(f"special_{name}") for name in ("reasons", "runs", "values")
)
special_differences, special_examples = (
    importlib.import_module(f"special_{name}") for name in ("differences", "examples")
)
Difference, Who = special_differences.Difference, special_differences.Who
Kind, Planted, with_values = special_examples.Kind, special_examples.Planted, special_examples.with_values
rows_of, tables = special_values.rows_of, special_values.tables
Array = np.ndarray[Any, np.dtype[Any]]

PAGE = (ROOT / "docs" / "numerics_by_operator.md").read_text("utf-8")


@cache
def cases() -> Any:
    return special_values.of_one_node(published().values())


def rows() -> list[str]:
    """The rows of the page's table of operators."""
    found = re.search(r"<!-- table: operators -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert found
    return found[1].splitlines()[2:]


def operator_of(row: str) -> str:
    return row.split("`")[1]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("operator", special_values.listed_operators())
def test_rows_are_what_is_computed(operator: str) -> None:
    if special_values.versions() not in PAGE:
        pytest.skip(f"the page is of other versions than {special_values.versions()}")
    assert [row for row in rows() if operator_of(row) == operator] == rows_of(operator, cases())


def test_each_operator_that_takes_numbers_has_a_row() -> None:
    assert list(dict.fromkeys(map(operator_of, rows()))) == special_values.listed_operators()


def test_sentences_are_those_of_the_reasons() -> None:
    for name, text in tables(rows()).items():
        if name != "versions":
            assert f"<!-- table: {name} -->\n{text}\n<!-- end -->" in PAGE


def test_a_difference_without_a_reason_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special_reasons, "REASONS", ())
    with pytest.raises(
        special_values.UnexplainedError, match=r"Clip .*float32, NaN \(nan,\).*: nan\? / .* / nan \(ONNX Runtime\)"
    ):
        rows_of("Clip", cases())


def test_a_reason_without_a_difference_is_an_error() -> None:
    with pytest.raises(SystemExit, match="reasons that explain nothing:\nONNX does not say in which order NaN comes"):
        tables([row for row in rows() if "[1]" not in row])


def test_a_wrong_answer_of_ours_has_no_reason() -> None:
    """Where both others agree a sentence has to name the operator and the class of values."""
    plain = ("Add", "Mul", "Abs", "Gather", "Softmax", "Conv")
    answers = [Difference(operator, kind, "float32", Who.HERE) for operator in plain for kind in Kind]
    explained = [one for one in answers if special_values.reason_of(one) is not None]
    assert {(one.operator, one.kind) for one in explained} <= {("Conv", Kind.LARGE), ("Conv", Kind.ZERO)}


def test_special_values_stand_between_ordinary_ones_or_everywhere() -> None:
    ordinary = np.arange(1, 9, dtype=np.float32)
    np.testing.assert_array_equal(
        with_values(ordinary, Planted(Kind.INFINITY, (np.inf, -np.inf))), [np.inf, 2, -np.inf, 4, 5, 6, 7, 8]
    )
    np.testing.assert_array_equal(with_values(ordinary, Planted(Kind.NAN, (np.nan,), True)), [np.nan] * 8)
    np.testing.assert_array_equal(with_values(ordinary, Planted(Kind.ORDINARY, ())), ordinary)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint64"])
def test_ordinary_numbers_come_first_and_all_values_are_of_the_type(dtype: str) -> None:
    (add,) = (one for one in special_examples.examples("Add", cases()) if one.dtype == dtype)
    assert [planted.kind for _, planted in add.runs()].count(Kind.ORDINARY) == 1
    assert next(add.runs())[1].kind is Kind.ORDINARY
    assert {place for place, _ in add.runs()} == {0, 1}
    assert all(
        feed.dtype.name == dtype for p in special_examples.planted_values(dtype) for feed in add.feeds(0, p).values()
    )


def test_both_operands_of_a_quotient_are_special_at_once() -> None:
    (div,) = (one for one in special_examples.examples("Div", cases()) if one.dtype == "int32")
    (both,) = ((place, planted) for place, planted in div.runs() if planted.beside)
    feeds = div.feeds(*both)
    assert set(feeds["i0"].flat) == {-(2**31), 0}
    assert set(feeds["i1"].flat) == {-1}


def test_inputs_that_end_onnxruntime_are_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    run = special_runs._run

    def ended_by_seven(session: Any, feeds: dict[str, Array]) -> tuple[Array, ...]:
        if feeds["x"][0] == 7:
            os.kill(os.getpid(), signal.SIGFPE)
        if feeds["x"][0] == 8:
            raise RuntimeError("no such number")
        results: tuple[Array, ...] = run(session, feeds)
        return results

    monkeypatch.setattr(special_runs, "_run", ended_by_seven)
    answers = special_runs.by_onnxruntime(model, [{"x": np.array([x], np.float32)} for x in (6, 7, 8, 9)])
    assert [answer.why for answer in answers] == ["", "SIGFPE", "error", ""]
    assert [float(a.arrays[0][0]) for a in answers if a.arrays is not None] == [-6, -9]
