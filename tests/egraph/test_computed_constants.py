"""Guards about terms that a rule names, and constants that it computes, in the e-graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.extraction import extract
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.egraph.building import Builder, feeds_of, run

MEAN = """rewrite mean_as_sum in algebra
    ReduceMean(x; axes = a, keepdims = 1) => Div(ReduceSum(x; axes = a, keepdims = 1), n)
    let n = prod(take(shape(x), wrap(a, rank(x))))
    where present(a), {guard}
    explores
"""
FOLDED = """rewrite folded in algebra
    Relu(t) => t
    let t = Abs(x)
    where uses(t) {uses}, rank(t) == 2, value({constant}) == 5
"""


def rules_of(tmp_path: Path, text: str) -> RuleBase:
    path = tmp_path / "mine.smr"
    path.write_text(text)
    return load_rules([path])


def saturated(base: RuleBase, builder: Builder, rule: str, root: str) -> Saturation:
    graph = builder.finish(root)
    saturation = saturate(graph, base, ["algebra"], disable=base.rule_names() - {rule})
    if saturation.statistics[rule].fired:
        kept = saturation.classes[saturation.tensor_class[root]]
        kept.nodes = [node for node in kept.nodes if node.rules] or kept.nodes
        extracted, _ = extract(saturation, graph, base.devices["pocl"])
        feeds = feeds_of(graph, signed=True)
        for expected, actual in zip(run(graph, feeds), run(extracted, feeds), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
    return saturation


@pytest.mark.parametrize(("guard", "fires"), [("n > 4", True), ("n < 4", False)])
def test_a_constant_is_computed_from_extents(tmp_path: Path, guard: str, fires: bool) -> None:
    base = rules_of(tmp_path, MEAN.format(guard=guard))
    builder = Builder(base)
    root = builder.add("ReduceMean", builder.input("x", (2, 3, 4)), axes=(1, -1), keepdims=1)
    saturation = saturated(base, builder, "mean_as_sum", root)
    assert bool(saturation.statistics["mean_as_sum"].fired) == fires
    if fires:
        assert saturation.constants.uniform(0) == 12.0


def test_a_constant_that_the_type_does_not_have_is_refused(tmp_path: Path) -> None:
    base = rules_of(tmp_path, "rewrite halved in algebra\n    Abs(Abs(x)) => Mul(x, rank(x) / 2)\n    explores\n")
    builder = Builder(base)
    root = builder.add("Abs", builder.add("Abs", builder.input("x", (2, 3, 4), "int32")))
    saturation = saturated(base, builder, "halved", root)
    assert not saturation.statistics["halved"].fired
    assert "1.5, which is no int32" in saturation.near_misses[0].reason


@pytest.mark.parametrize(
    ("uses", "constant", "fires"), [("== 2", "Add(c, c)", True), ("== 1", "Add(c, c)", False), ("== 2", "c", False)]
)
def test_guards_ask_about_terms(tmp_path: Path, uses: str, constant: str, fires: bool) -> None:
    text = FOLDED.format(uses=uses, constant="sum") + f"    let sum = {constant}\n"
    base = rules_of(tmp_path, text.replace("Relu(t) => t", "Mul(Relu(t), c) => Mul(t, c)"))
    builder = Builder(base)
    inner = builder.add("Abs", builder.input("x", (2, 3)))
    root = builder.add("Mul", builder.add("Relu", inner), builder.constant("c", np.array(2.5, np.float32)))
    builder.graph.outputs.append(inner)
    assert bool(saturated(base, builder, "folded", root).statistics["folded"].fired) == fires
