"""TreeEnsemble against a walk down each tree, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

NAN = float("nan")
TREES: dict[str, Any] = {
    "n_targets": 3,
    "tree_roots": [0, 3],
    "nodes_featureids": [0, 1, 2, 1],
    "nodes_splits": [0.5, -0.2, NAN, 1.0],
    "nodes_modes": [0, 3, 6, 5],
    "nodes_truenodeids": [1, 0, 2, 0],
    "nodes_trueleafs": [0, 1, 1, 1],
    "nodes_falsenodeids": [2, 1, 3, 4],
    "nodes_falseleafs": [0, 1, 1, 1],
    "nodes_missing_value_tracks_true": [0, 1, 0, 0],
    "membership_values": [1.0, 2.0, NAN],
    "leaf_targetids": [0, 1, 2, 0, 1],
    "leaf_weights": [1.5, -2.0, 3.0, 0.25, 7.0],
}
TENSORS = {"nodes_splits": "float32", "nodes_modes": "uint8", "membership_values": "float32", "leaf_weights": "float32"}


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


def model_of(rows: int, **changes: Any) -> onnx.ModelProto:
    given = {**TREES, **changes}
    for name, dtype in TENSORS.items():
        given[name] = numpy_helper.from_array(np.array(given[name], dtype), name)
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **given)
    x = helper.make_tensor_value_info("x", 1, [rows, 3])
    graph = helper.make_graph([node], "trees", [x], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 5)], ir_version=10)


def leaf_of(row: np.ndarray, place: int) -> int:
    while True:
        value, mode = row[TREES["nodes_featureids"][place]], TREES["nodes_modes"][place]
        split = np.float32(TREES["nodes_splits"][place])
        taken = {0: value <= split, 3: value > split, 5: value != split, 6: value in (1.0, 2.0)}[mode]
        taken = taken or bool(np.isnan(value) and TREES["nodes_missing_value_tracks_true"][place])
        way = "true" if taken else "false"
        following = TREES[f"nodes_{way}nodeids"][place]
        if TREES[f"nodes_{way}leafs"][place]:
            return int(following)
        place = following


@pytest.mark.parametrize("way", range(4))
def test_rows_go_down_all_trees(rules: RuleBase, way: int) -> None:
    x = np.random.default_rng(way).choice(np.array([-1, -0.2, 0.5, 1, 2, NAN, 9], np.float32), (40, 3))
    graph = import_model(model_of(40, aggregate_function=way), rules)
    known: dict[str, Any] = dict(graph.constants) | {"x": x}
    for node in graph.nodes:
        known.update(evaluate_equations(node.equations, known))
    for row, result in zip(x, known["y"], strict=True):
        leaves = [leaf_of(row, root) for root in TREES["tree_roots"]]
        for target in range(3):
            own = [TREES["leaf_weights"][leaf] for leaf in leaves if TREES["leaf_targetids"][leaf] == target]
            wanted = [sum(own) / 2, sum(own), min(own, default=0), max(own, default=0)][way]
            assert result[target] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": [1, 0, 2, 99]}, "a branch leads nowhere"),
        ({"nodes_falseleafs": [0, 1, 0, 1], "nodes_falsenodeids": [2, 1, 0, 4]}, "a cycle"),
        ({"post_transform": 4}, "post_transform = 4"),
        ({"nodes_trueleafs": [0, 1, 0]}, "nodes_trueleafs has 3 entries, and nodes_featureids has 4"),
        ({"leaf_targetids": 1}, r"leaf_targetids has the shape \[\]"),
    ],
)
def test_damaged_trees_are_refused(rules: RuleBase, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        import_model(model_of(2, **changes), rules)
