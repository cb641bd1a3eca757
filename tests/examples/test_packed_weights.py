"""Weights of four bits stay packed in the plan."""

from __future__ import annotations

import numpy as np
import pytest

import smartmem_rules as sm
from examples.packed_weights.model import RULES, build, unpacked
from tests.examples.custom import constants_of, optimized


@pytest.mark.parametrize("level", ["none", "smartmem"])
def test_they_are_unpacked_where_they_are_multiplied(level: str) -> None:
    model = build()
    plan = sm.optimize(model, rules=[RULES], level=level)
    weights = constants_of(model)
    held = {one.name: one for one in plan.plan.tensors.values() if one.role == "constant"}
    assert held["w"].storage == "uint8"
    assert sum(one.type.elements * np.dtype(one.storage).itemsize for one in held.values()) <= sum(
        one.nbytes for one in weights.values()
    )
    feeds = plan.random_feeds()
    expected = feeds["x"] @ unpacked(weights["w"], weights["scale"])
    np.testing.assert_allclose(plan.run(feeds)["y"], expected, rtol=2e-4, atol=2e-4)


def test_small_ones_are_folded() -> None:
    plan = optimized(build(depth=16, columns=64), RULES)
    assert not any(one.storage == "uint8" for one in plan.plan.tensors.values())


def test_without_the_rule_they_are_unpacked_when_the_model_is_imported() -> None:
    plan = sm.optimize(build(), rules=[RULES], disable=["packed_weights"])
    assert not any(one.storage == "uint8" for one in plan.plan.tensors.values())


def test_the_rule_holds_somewhere() -> None:
    (report,) = sm.verify(RULES, jobs=1, trials=40).rules
    assert (report.kind, report.verdict) == ("keep", "proved")
