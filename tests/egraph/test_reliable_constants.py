"""Rules that relax reassociation refuse constants whose elements they would lose, or that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.attempts import ATTEMPTS, with_reliable_constants
from smartmem_rules.egraph.constants import LOOKED_AT, Constants
from smartmem_rules.egraph.matching import LOST, UNRELIABLE
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.extraction import extract
from smartmem_rules.graph.model import Graph
from smartmem_rules.rulebase.base import RuleBase
from tests.egraph.building import Builder

Array = np.ndarray[Any, np.dtype[Any]]
MANY = LOOKED_AT + 1


def single(*values: float) -> Array:
    return np.array(values, np.float32)


def scaled(base: RuleBase, operator: str, constants: list[Array], dtype: str = "float32") -> Graph:
    """A vector through one operator with each constant."""
    builder = Builder(base)
    x = builder.input("x", (max(c.size for c in constants),), dtype)
    for place, constant in enumerate(constants):
        x = builder.add(operator, x, builder.constant(f"c{place}", constant.astype(dtype)))
    return builder.finish(x)


def fired(graph: Graph, base: RuleBase, rule: str) -> Saturation:
    return saturate(graph, base, ["algebra"], disable=base.rule_names() - {rule})


@pytest.mark.parametrize(
    ("constants", "reason"),
    [
        ([single(2, 3), single(0, -4)], None),
        ([single(2, 3e38), single(4, 5)], UNRELIABLE),
        ([single(np.inf, 3), single(4, 5)], UNRELIABLE),
        ([single(2, 3), single(np.nan, 5)], UNRELIABLE),
        ([single(2, 1e15), single(4, 1e10)], LOST),
        ([single(2, 1e-30), single(4, 1e-20)], LOST),
        ([single(2, 1e-20), single(4, 1e-20)], LOST),
        ([single(2, 0), single(4, 1e-20)], None),
    ],
)
def test_products_of_constants_lose_nothing(base: RuleBase, constants: list[Array], reason: str | None) -> None:
    saturation = fired(scaled(base, "Mul", constants), base, "multiply_constants")
    assert bool(saturation.statistics["multiply_constants"].fired) == (reason is None)
    reasons = {miss.reason for miss in saturation.near_misses} & {LOST, UNRELIABLE}
    assert reasons == ({reason} if reason else set())


@pytest.mark.parametrize(
    ("dtype", "constants", "fires"),
    [
        ("float64", [single(1e30, 2), single(1e30, 2)], True),
        ("float16", [single(300, 2), single(300, 2)], False),
        ("float16", [single(1e-3, 2), single(1e-3, 2)], True),
        ("float16", [single(1e-3, 1e-3), single(1e-3, 1e-3)], False),
        ("int32", [single(1 << 20, 2), single(1 << 20, 2)], True),
    ],
)
def test_the_type_says_what_is_lost(base: RuleBase, dtype: str, constants: list[Array], fires: bool) -> None:
    """A small half among large ones is rounded as coarsely as those are; integers wrap in each order alike."""
    saturation = fired(scaled(base, "Mul", constants, dtype), base, "multiply_constants")
    assert bool(saturation.statistics["multiply_constants"].fired) == fires


def test_sums_that_cancel_lose_nothing(base: RuleBase) -> None:
    saturation = fired(scaled(base, "Add", [single(1e-30, 1), single(-1e-30, 1e-20)]), base, "add_constants")
    assert saturation.statistics["add_constants"].fired


def test_a_mask_of_infinities_is_moved_and_not_multiplied(base: RuleBase) -> None:
    """Rules that only move or negate a mask keep what it is for; `subtract_constant` relaxes nothing."""
    builder = Builder(base)
    mask = builder.constant("mask", np.triu(np.full((3, 3), -np.inf, np.float32), 1))
    masked = builder.add("Sub", builder.input("x", (3, 3)), mask)
    graph = builder.finish(builder.add("Add", masked, builder.constant("c", np.full((3, 3), 2, np.float32))))
    rules = {"subtract_constant", "add_constants"}
    saturation = saturate(graph, base, ["recognise", "algebra"], disable=base.rule_names() - rules)
    assert saturation.statistics["subtract_constant"].fired
    assert not saturation.statistics["add_constants"].fired


@pytest.mark.parametrize(("alpha", "k", "fires"), [(0.5, 4.0, True), (1e20, 1e19, False), (1e-20, 1e-19, False)])
def test_attributes_lose_nothing(base: RuleBase, alpha: float, k: float, fires: bool) -> None:
    builder = Builder(base)
    w, b = (builder.constant(name, np.ones(shape, np.float32)) for name, shape in (("w", (4, 5)), ("b", (5,))))
    product = builder.add("Gemm", builder.input("x", (3, 4)), w, b, alpha=alpha)
    graph = builder.finish(builder.add("Mul", product, builder.constant("k", np.array(k, np.float32))))
    saturation = fired(graph, base, "scale_after_gemm")
    assert bool(saturation.statistics["scale_after_gemm"].fired) == fires


@pytest.mark.parametrize(("scale", "fires"), [(0.125, True), (1e-6, False), (1e6, False)])
def test_scales_of_scores_are_moderate(base: RuleBase, scale: float, fires: bool) -> None:
    """Behind the product a small scale finds infinities, and a large one zeros."""
    builder = Builder(base)
    q, k = builder.input("q", (2, 3, 4)), builder.input("k", (2, 4, 3))
    scaled = builder.add("Mul", q, builder.constant("c", np.array(scale, np.float32)))
    graph = builder.finish(builder.add("MatMul", scaled, k))
    rule = "scale_of_queries"
    saturation = saturate(graph, base, ["recognise"], disable=base.rule_names() - {rule})
    assert bool(saturation.statistics[rule].fired) == fires


def chosen(graph: Graph, base: RuleBase) -> tuple[Graph, list[Saturation]]:
    """The form that is chosen, and what was saturated on the way."""
    tried: list[Saturation] = []

    def choose(constants: Constants, unreliable: Any) -> Graph:
        tried.append(saturate(graph, base, ["algebra"], unreliable, constants=constants))
        return extract(tried[-1], graph, base.devices["pocl"])[0]

    return with_reliable_constants(base, choose), tried


@pytest.mark.parametrize("bad", [3e38, 1e-30, np.inf])
def test_large_constants_are_looked_at_when_they_are_computed(base: RuleBase, bad: float) -> None:
    many = np.full(MANY, 1e-10, np.float32)
    many[5] = bad
    graph, tried = chosen(scaled(base, "Mul", [many, np.full(MANY, 1e-10, np.float32)]), base)
    assert len(tried) == 2
    assert [node.operator for node in graph.nodes] == ["Mul", "Mul"]
    assert set(graph.constants) == {"c0", "c1"}


def test_each_constant_of_a_chain_is_looked_at(base: RuleBase) -> None:
    """1e15 * 1e3 is moderate, and beside it 1e15 no longer."""
    graph, tried = chosen(scaled(base, "Mul", [single(1e15), single(1e3), single(1e15)]), base)
    assert len(tried) == 1
    assert sorted(float(one[0]) for one in graph.constants.values()) == pytest.approx([1e15, 1e18])


def test_large_ordinary_constants_are_computed_at_once(base: RuleBase) -> None:
    graph, tried = chosen(scaled(base, "Mul", [np.full(MANY, 2, np.float32), np.arange(MANY, dtype=np.float32)]), base)
    assert len(tried) == 1
    assert [node.operator for node in graph.nodes] == ["Mul"]


def test_rules_do_without_reassociation_in_the_end(base: RuleBase) -> None:
    """Each attempt finds a few of the many products that underflow."""
    many = [np.full(MANY, 1e-15 * (1 + place), np.float32) for place in range(8)]
    graph, tried = chosen(scaled(base, "Mul", many), base)
    assert len(tried) <= ATTEMPTS + 1
    assert all(float(one.flat[0]) >= 2.0**-126 for one in graph.constants.values())
