"""Instances that are made on purpose, because chance seldom makes them."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.language import syntax as s
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.instances.operands import SPECIAL, draw_values, special_values
from smartmem_rules.verification.semantics.domains import Domain
from smartmem_rules.verification.semantics.terms import leaves

UNSOUND = Path(__file__).parents[2] / "corpus" / "unsound" / "open_attributes.smr"


def search_of(name: str) -> Search:
    base = load_rules([UNSOUND])
    (rule,) = (rule for rule in base.rewrites if rule.name == name)
    assert isinstance(rule, s.Rewrite)
    return Search(rule, rule.left, rule.right, Instances(base), 1)


def cases_of(name: str, count: int) -> list[Case]:
    return [case for case in islice(search_of(name).cases(count), count) if case is not None]


def test_an_attribute_that_the_pattern_leaves_open_is_there_and_axes_have_several_elements() -> None:
    found = [
        case
        for case in cases_of("oa_steps", 200)
        if case.choices["given:0.0"].get("steps", (1,))[0] > 1 and case.left.type.shape[0] > 1
    ]
    assert found


def test_sums_of_bytes_have_more_terms_than_a_byte_counts() -> None:
    found = [case for case in cases_of("oa_bytes", 60) if leaves(case.left)["x"].type.elements > 127]
    assert len(found) >= 6


def test_an_element_type_that_was_the_usual_one_may_become_the_one_that_guards_name() -> None:
    types = [leaf.type.dtype for case in cases_of("oa_padded", 60) for leaf in leaves(case.left).values()]
    assert set(types) == {"float32"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_computed_in_single_precision(dtype: str) -> None:
    case = search_of("oa_steps").build({**cases_of("oa_steps", 10)[0].choices, "dtype": dtype, "dtype:x": dtype})
    assert case is not None
    source = random.Random(1)
    for values in (special_values(case, SPECIAL, source), draw_values(case, Domain(), source)):
        assert values["x"][0].dtype == np.float32
