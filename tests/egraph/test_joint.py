"""Rules of several patterns in the e-graph: what they match, how often, and that what is chosen has no cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import smartmem_rules as sm
from examples.joint_products.model import RULES, build
from smartmem_rules.egraph.joint import MATCHES, Dependence, most_readers
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.egraph.saturation import Bounds, saturate
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import Graph
from smartmem_rules.rulebase.base import RuleBase, load_rules

STACKED = """ruleset together after algebra
rewrite stacked in together                          # [sin x, cos y] where both are added to one w
    Add(w, Sin(x)), Add(w, Cos(y)) => Slice(s; starts = [0], ends = [1], axes = [0]),
        Slice(s; starts = [1], ends = [2], axes = [0])
    let s = Add(w, Concat(Sin(x), Cos(y); axis = 0))
    where shape(w) == shape(x), shape(x) == shape(y), rank(x) == 2, extent(x, 0) == 1
    relaxes reassociation
"""
ROW = (1, 4)
UNHURRIED = Bounds(enodes=100_000, seconds=1e9)
"""No limit of time: the machine may be busy."""


def base_of(tmp_path: Path, text: str) -> RuleBase:
    path = tmp_path / "mine.smr"
    path.write_text(text)
    return load_rules([path])


def model_of(nodes: list[onnx.NodeProto], inputs: list[str], outputs: list[str]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "joint",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ROW) for name in inputs],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ROW) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def saturated(graph: Graph, base: RuleBase) -> Saturation:
    return saturate(graph, base, ["eliminate", "together"], bounds=UNHURRIED)


def units(count: int) -> Saturation:
    base = load_rules([RULES])
    return saturated(import_model(build(units=count, rows=8, width=8), base), base)


def test_the_same_tensors_are_rewritten_once_and_all_equations_together() -> None:
    found = units(1)
    statistics = [found.statistics[f"three_products.{place}"] for place in (1, 2, 3)]
    assert [one.tried for one in statistics] == [6, 6, 6]
    assert [one.fired for one in statistics] == [1, 1, 1]
    products = [node for c in found.classes.values() for node in c.nodes if node.operator == "MatMul" and node.rules]
    assert len(products) == 1
    assert found.stopped is None


def test_matches_grow_with_the_model() -> None:
    few, many = units(2), units(8)
    assert many.statistics["three_products.1"].tried == 4 * few.statistics["three_products.1"].tried
    assert many.statistics["three_products.1"].fired == 8


@pytest.mark.parametrize("patterns", [2, 3, 4, 5])
def test_the_bound_of_readers(patterns: int) -> None:
    most = most_readers(patterns)
    assert most >= patterns
    assert most**patterns <= MATCHES < (most + 1) ** patterns


def test_a_tensor_with_more_readers_is_not_shared() -> None:
    base = load_rules([RULES])
    for count, tried in ((16, 16 * 15 * 14), (17, 0)):
        random = np.random.default_rng(0)
        weights = [numpy_helper.from_array(random.random((4, 4)).astype(np.float32), f"w{n}") for n in range(count)]
        nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"y{n}"], f"y{n}") for n in range(count)]
        model = model_of(nodes, ["x"], [f"y{n}" for n in range(count)])
        model.graph.initializer.extend(weights)
        found = saturated(import_model(model, base), base)
        assert found.statistics["three_products.1"].tried == tried
        assert found.stopped is None


def test_tensors_that_need_one_another_are_not_computed_together(tmp_path: Path) -> None:
    base = base_of(tmp_path, STACKED)
    nodes = [
        helper.make_node("Sin", ["x"], ["sx"], "sx"),
        helper.make_node("Add", ["w", "sx"], ["a"], "a"),
        helper.make_node("Cos", ["a"], ["ca"], "ca"),
        helper.make_node("Add", ["w", "ca"], ["b"], "b"),
    ]
    found = saturated(import_model(model_of(nodes, ["x", "w"], ["a", "b"]), base), base)
    assert found.statistics["stacked.1"].tried > 0
    assert found.statistics["stacked.1"].fired == found.statistics["stacked.2"].fired == 0
    assert any("is computed from" in miss.reason for miss in found.near_misses if miss.rule.startswith("stacked"))


def test_dependence() -> None:
    nodes = [helper.make_node("Relu", [a], [b], b) for a, b in (("x", "a"), ("a", "b"), ("x", "c"))]
    order = Dependence(import_model(model_of(nodes, ["x"], ["b", "c"]), load_rules()))
    assert order.needs("b", "a")
    assert order.needs("b", "b")
    assert not order.needs("a", "b")
    assert not order.needs("c", "a")
    assert not order.needs("x", "a")


def test_two_matches_that_would_need_each_other_are_not_both_chosen(tmp_path: Path) -> None:
    """Each pair may become one sum; both together would be a cycle, which extraction has to leave out."""
    path = tmp_path / "mine.smr"
    path.write_text(STACKED)
    nodes = [
        helper.make_node("Sin", ["x"], ["s1"], "s1"),
        helper.make_node("Add", ["w", "s1"], ["a1"], "a1"),
        helper.make_node("Cos", ["a1"], ["c2"], "c2"),
        helper.make_node("Add", ["v", "c2"], ["a2"], "a2"),
        helper.make_node("Sin", ["z"], ["s3"], "s3"),
        helper.make_node("Add", ["v", "s3"], ["b1"], "b1"),
        helper.make_node("Cos", ["b1"], ["c4"], "c4"),
        helper.make_node("Add", ["w", "c4"], ["b2"], "b2"),
    ]
    model = model_of(nodes, ["x", "z", "v", "w"], ["a2", "b2"])
    base = load_rules([path])
    found = saturated(import_model(model, base), base)
    # a1 with b2, and b1 with a2: a2 is computed from a1, and b2 from b1
    assert found.statistics["stacked.1"].fired == 2
    plan = sm.optimize(model, rules=[path], level="eliminate")
    assert plan.check().passed


def test_an_equation_left_out_leaves_the_others(tmp_path: Path) -> None:
    del tmp_path
    base = load_rules([RULES], ["three_products.1"])
    found = saturated(import_model(build(rows=8, width=8), base), base)
    assert "three_products.1" not in found.statistics
    assert found.statistics["three_products.2"].fired == found.statistics["three_products.3"].fired == 1
