"""Instances in which a tensor has no elements: that they are drawn, compared, made small and shown again."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import smartmem_rules as sm
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.instances.emptied import without_elements
from smartmem_rules.verification.results import RuleReport
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import Domain, Loose, Rationals
from smartmem_rules.verification.semantics.terms import compute, leaves, subterms

GREATEST = """rewrite greatest in algebra
    ReduceMax(Relu(x); @r) => Relu(ReduceMax(x; @r))
    {where}
    explores
"""
BROAD = """rewrite broad in algebra
    {left} => Identity({left})
    relaxes reassociation
    explores
"""


def verified(folder: Path, text: str) -> RuleReport:
    path = folder / "mine.smr"
    path.write_text(text)
    (report,) = sm.verify(path, jobs=1).rules
    return report


def empty_cases(folder: Path, text: str, most: int = 200) -> list[Case]:
    path = folder / "mine.smr"
    path.write_text(text)
    base = load_rules([path])
    (rule,) = [rule for rule in base.rewrites if rule.span.file == str(path)]
    search = Search(rule, rule.left, rule.right, Instances(base), 1)
    search.empties = True
    return [case for case in search.cases(most) if case is not None and case.is_empty]


def test_a_rule_that_is_wrong_for_nothing_alone_is_refuted_and_shown_again(tmp_path: Path) -> None:
    report = verified(tmp_path, GREATEST.format(where=""))
    assert report.verdict == "failed"
    assert report.counterexample is not None
    assert "-inf" in report.counterexample.summary
    assert any("float32[0] = []" in line for line in report.counterexample.lines)
    names: dict[str, object] = {}
    exec(report.counterexample.snippet, names)
    assert np.all(names["left"] == -np.inf)
    assert np.all(names["right"] == 0)


def test_a_guard_makes_it_right(tmp_path: Path) -> None:
    assert verified(tmp_path, GREATEST.format(where="where prod(shape(x)) > 0")).verdict == "tested"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("left", [
    "Mul(MatMul(x, y), c)", "Gemm(x, y, c)", "Concat(x, y; axis = 0)", "ReduceSum(Add(x, y); @r)", "Conv(x, w; @c)",
])  # fmt: skip
def test_results_have_elements_and_operands_have_none(tmp_path: Path, left: str) -> None:
    cases = empty_cases(tmp_path, BROAD.format(left=left))
    assert len(cases) >= 3
    for case in cases:
        assert case.left.type.elements > 0
        assert any(term.type.elements == 0 for term in subterms(case.left))
        assert all(extent >= 0 for term in subterms(case.left) for extent in term.type.shape)


def test_a_slice_may_take_nothing(tmp_path: Path) -> None:
    text = """rewrite parts in algebra
    Concat(Slice(x; starts = s, ends = e, axes = a), y; axis = 0)
    => Identity(Concat(Slice(x; starts = s, ends = e, axes = a), y; axis = 0))
    explores
"""
    cases = empty_cases(tmp_path, text)
    assert any(leaves(case.left)["x"].type.elements > 0 for case in cases)


def test_changes_leave_the_choices_of_the_instance_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.smr"
    path.write_text(GREATEST.format(where=""))
    base = load_rules([path])
    (rule,) = [rule for rule in base.rewrites if rule.span.file == str(path)]
    search = Search(rule, rule.left, rule.right, Instances(base), 1)
    case = next(case for case in search.cases(100) if case is not None and len(leaves(case.left)["x"].type.shape) > 1)
    before = dict(case.choices)
    changed = without_elements(case, random.Random(1))
    assert case.choices == before
    assert {0} <= {n for choices in changed for n in choices["shape:x"]}
    assert not any(case.is_empty for case in search.cases(100) if case is not None), "only where they are asked for"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("operator", "expected"), [
    ("ReduceSum", 0.0), ("ReduceProd", 1.0), ("ReduceMax", -np.inf), ("ReduceMin", np.inf), ("ReduceMean", 0.0),
])  # fmt: skip
def test_reductions_of_nothing_are_their_neutral_elements(tmp_path: Path, operator: str, expected: float) -> None:
    left = f"{operator}(x; axes = [0])"
    cases = empty_cases(tmp_path, BROAD.format(left=left))
    found = [case for case in cases if case.left.type.dtype == "float32"]
    assert found
    for case, domain in product(found, (Domain(), Loose(), Rationals(), Bounded())):
        shape = leaves(case.left)["x"].type.shape
        tensors = {"x": tuple(np.broadcast_to(part, shape) for part in domain.constant(1.0, "float32"))}
        value = compute(case.left, tensors, domain)[0]
        assert all(float(one) == expected for one in value.reshape(-1)), domain.name


def test_integers_of_none_are_the_limits_of_their_type(tmp_path: Path) -> None:
    cases = empty_cases(tmp_path, BROAD.format(left="ReduceMax(x; axes = [0])"))
    kinds = {
        case.left.type.dtype: case for case in cases if case.left.type.dtype in ("int32", "uint8", "int8", "int64")
    }
    assert kinds
    for dtype, case in kinds.items():
        x = np.zeros(leaves(case.left)["x"].type.shape, dtype)
        assert np.all(compute(case.left, {"x": (x,)}, Domain())[0] == np.iinfo(dtype).min)
