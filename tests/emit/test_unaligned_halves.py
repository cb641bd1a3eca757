"""Vectors of halves that begin anywhere: an aligned access there ends the process on some CPUs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from smartmem_rules.api import optimize
from tests.plan.models import Node, i64, model

VECTOR = re.compile(r"(?P<unaligned>smr_)?v(?:load|store)_half[48](?:_rte)?\(")


@pytest.mark.parametrize(("width", "aligned"), [(16, True), (17, False), (24, True), (55, False)])
def test_rows_of_odd_length(width: int, aligned: bool) -> None:
    """Row i begins at element i * width: a multiple of a vector's length only if the width is one."""
    values = np.random.default_rng(0).standard_normal((3, width)).astype(np.float16)
    plan = optimize(model([("Neg", "x", "y")], {"x": values}, "y"))
    kernel = plan.plan.sources[0].text.partition("__kernel")[2]
    assert {found["unaligned"] is None for found in VECTOR.finditer(kernel)} == {aligned}
    np.testing.assert_array_equal(plan.run({"x": values})["y"], -values)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("shape", [(61, 15), (44, 55), (1, 7), (3, 9, 1)])
def test_padded_rows_of_constants(shape: tuple[int, ...], debug: bool) -> None:
    """Whole vectors of the padding are known, so that the compiler converts them before the loop."""
    values = np.random.default_rng(1).standard_normal((1,) * len(shape)).astype(np.float16)
    nodes: list[Node] = [("Pad", "x p c", "q"), ("Sin", "q", "y")]
    pads = i64(*(0 for _ in shape), *(extent - 1 for extent in shape))
    proto = model(nodes, {"x": values}, "y", {"p": pads, "c": np.float16(0.5)})
    wanted = np.full(shape, np.sin(0.5))
    wanted[(0,) * len(shape)] = np.sin(values.astype(np.float64)).item()
    got = optimize(proto, debug=debug).run({"x": values})["y"]
    np.testing.assert_allclose(got.astype(np.float64), wanted, atol=2e-3)
