"""The example models: stripped weights are filled in and all systems see the same values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.zoo import materialized_model, save_materialized
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.runtime.feeds import check_feeds
from smartmem_rules.tensor.interpreter.interpret import evaluate_equations

MODELS = Path(__file__).parents[2] / "examples" / "models"


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


def test_both_ways_give_the_same_weights(rules: RuleBase, tmp_path: Path) -> None:
    path = MODELS / "mobilenetv2.onnx"
    graph = import_model(path, rules)
    stored = {t.name: numpy_helper.to_array(t) for t in materialized_model(path).graph.initializer}
    shared = set(stored) & set(graph.constants)
    assert len(shared) > 50
    for name in shared:
        np.testing.assert_array_equal(stored[name], graph.constants[name])
    save_materialized(path, tmp_path / "whole.onnx")
    again = import_model(tmp_path / "whole.onnx", rules)
    assert all(np.array_equal(again.constants[name], graph.constants[name]) for name in shared)


@pytest.mark.parametrize("name", ["mobilenetv2", pytest.param("swin_tiny", marks=pytest.mark.exhaustive)])
def test_interpreted_models_agree_with_onnxruntime(rules: RuleBase, name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = MODELS / f"{name}.onnx"
    graph = import_model(path, rules)
    rng = np.random.default_rng(1)
    feeds = check_feeds(
        {n: graph.types[n] for n in graph.inputs},
        {n: rng.standard_normal(graph.types[n].shape).astype(np.float32) for n in graph.inputs},
    )
    values = {**graph.constants, **feeds}
    for node in graph.nodes:
        values.update(evaluate_equations(node.equations, values))
    session = runtime.InferenceSession(materialized_model(path).SerializeToString(), providers=["CPUExecutionProvider"])
    for output, expected in zip(graph.outputs, session.run(graph.outputs, feeds), strict=True):
        np.testing.assert_allclose(values[output], expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["swin_tiny", "vit_base", "convnext_tiny", "resnet50", "bert_base", "mobilenetv2"])
def test_every_tensor_of_an_example_has_a_type(rules: RuleBase, name: str) -> None:
    graph = import_model(MODELS / f"{name}.onnx", rules)
    assert graph.nodes
    assert set(graph.outputs) <= set(graph.types)
    types = set(graph.types)
    for node in graph.nodes:
        assert {*filter(None, node.operands), *node.outputs} <= types
