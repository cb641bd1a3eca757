"""Whether the past stays where it is, by the equations."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from smartmem_rules.decoding.choosing import GREATEST, Selection
from smartmem_rules.decoding.model.graphs import PAST, Step, make_step, without_weights
from smartmem_rules.decoding.model.growth import ANEW, BEHIND, COUNTED, Growth, growth_of, keeps_past
from smartmem_rules.decoding.model.interface import interface_of
from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules
from tests.decoding.models import model_of

KEY = "present.0.key"


def kept(model: onnx.ModelProto) -> list[bool]:
    interface = interface_of(model)
    without_weights(model)
    make_step(model, interface, Step(sequences=2, behind=True, selection=Selection(kind=GREATEST)))
    graph = import_model(model, load_rules(), {PAST: (1, 20)})
    return [keeps_past(graph, tensor) for tensor in interface.cached]


def copied(name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(model_of(name))
    return model


def growth(model: onnx.ModelProto) -> Growth:
    interface = interface_of(model)
    without_weights(model)
    make_step(model, interface, Step(sequences=2, behind=True, selection=Selection(kind=GREATEST)))
    return growth_of(import_model(model, load_rules(), {PAST: (1, 20)}), interface.cached, 21)


def test_counted_caches_grow_behind_their_counts() -> None:
    assert growth(copied("grouped_tiny")) == Growth(kind=COUNTED, counts="seqlens_k")
    assert growth(copied("llama_tiny")) == Growth(kind=BEHIND)


def test_a_past_that_something_else_reads_is_written_anew() -> None:
    model = copied("grouped_tiny")
    node = next(node for node in model.graph.node if "logits" in node.output)
    node.output[0] = "bare"
    model.graph.node.append(helper.make_node("ReduceMax", ["past_key_values.0.key"], ["most"], keepdims=0))
    model.graph.node.append(helper.make_node("Add", ["bare", "most"], ["logits"]))
    assert growth(model) == Growth(kind=ANEW)


def test_new_rows_in_front_are_written_anew() -> None:
    model = copied("llama_tiny")
    node = next(node for node in model.graph.node if KEY in node.output)
    node.input[0], node.input[1] = node.input[1], node.input[0]
    assert growth(model) == Growth(kind=ANEW)


@pytest.mark.parametrize(("name", "expected"), [("pythia_tiny", True), ("llama_tiny", True), ("grouped_tiny", False)])
def test_joined_caches_keep_the_past_and_those_by_counts_need_not(name: str, expected: bool) -> None:
    assert kept(copied(name)) == [expected] * 4


def test_new_rows_in_front_move_the_past() -> None:
    model = copied("llama_tiny")
    node = next(node for node in model.graph.node if KEY in node.output)
    first, second = node.input
    node.input[0], node.input[1] = second, first
    assert kept(model) == [False, True, True, True]


def test_a_past_that_is_computed_with_is_not_kept() -> None:
    model = copied("llama_tiny")
    place, node = next((n, node) for n, node in enumerate(model.graph.node) if KEY in node.output)
    node.input[0] = "scaled"
    model.graph.node.insert(place, helper.make_node("Mul", ["past_key_values.0.key", "scale"], ["scaled"]))
    assert kept(model) == [False, True, True, True]


def test_a_past_that_changes_its_heads_is_not_kept() -> None:
    model = copied("llama_tiny")
    place, node = next((n, node) for n, node in enumerate(model.graph.node) if KEY in node.output)
    node.input[0] = "turned"
    parts = helper.make_node("Split", ["past_key_values.0.key"], ["first", "second"], axis=1)
    joined = helper.make_node("Concat", ["second", "first"], ["turned"], axis=1)
    model.graph.node.insert(place, joined)
    model.graph.node.insert(place, parts)
    assert kept(model) == [False, True, True, True]
