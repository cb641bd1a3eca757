"""Tensors joined from hundreds of parts: expressions and kernels nest no deeper than Python and compilers follow."""

from __future__ import annotations

import re

import numpy as np
import pytest

import smartmem_rules as sm
from smartmem_rules.runtime.programs.excerpts import PRELUDE_END
from smartmem_rules.tensor.definitions.choices import IN_A_GROUP, MOST_IN_A_ROW
from tests.plan.models import Node, model, normal

MOST_COPIES = 3
"""Of an element's expression: for vectors and for what is left of a row."""


@pytest.mark.covering
@pytest.mark.parametrize("level", ["none", "smartmem"])
@pytest.mark.parametrize("count", [MOST_IN_A_ROW, MOST_IN_A_ROW + 2, 5 * IN_A_GROUP + 7])
def test_parts_of_several_extents(count: int, level: str) -> None:
    feeds = {f"x{n}": normal(2, 1 + n % 3, seed=n) for n in range(count)}
    nodes: list[Node] = [("Concat", " ".join(feeds), "joined", {"axis": 1}), ("Neg", "joined", "y")]
    plan = sm.optimize(model(nodes, feeds, "y"), level=level)
    # each part is chosen in one place, not once for each lane of a vector
    choices = sum(len(re.findall(r"\bif \(", one.text.rpartition(PRELUDE_END)[2])) for one in plan.plan.sources)
    assert choices < MOST_COPIES * count
    assert np.array_equal(plan.run(feeds)["y"], -np.concatenate(list(feeds.values()), axis=1))


@pytest.mark.covering
@pytest.mark.parametrize("count", [MOST_IN_A_ROW, MOST_IN_A_ROW + 2, 700])
@pytest.mark.parametrize("operator", ["Sum", "Mean", "Max", "Min"])
def test_many_terms(operator: str, count: int) -> None:
    """From 300 operands on, a term within the one before was deeper than Python's stack."""
    feeds = {f"x{n}": normal(5, seed=n) for n in range(7)}
    given = [f"x{n % 7}" for n in range(count)]
    plan = sm.optimize(model([(operator, " ".join(given), "y", {})], feeds, "y"))
    terms = np.stack([feeds[name] for name in given]).astype(np.float64)
    wanted = {"Sum": terms.sum, "Mean": terms.mean, "Max": terms.max, "Min": terms.min}[operator](axis=0)
    np.testing.assert_allclose(plan.run(feeds)["y"], wanted, atol=1e-7 * count)
