"""Inputs and outputs by their names."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.interface import interface_of
from tests.decoding.models import model_of


def changed(model: onnx.ModelProto, inputs: dict[str, str] | None = None) -> onnx.ModelProto:
    """The model with other names of its inputs; without those whose new name is empty."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    kept = [value for value in made.graph.input if (inputs or {}).get(value.name, "kept")]
    for value in kept:
        value.name = (inputs or {}).get(value.name, value.name)
    values = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in kept]
    del made.graph.input[:]
    made.graph.input.extend(values)
    return made


def test_keys_and_values_of_all_layers_are_found() -> None:
    found = interface_of(model_of("grouped_tiny"))
    assert (found.tokens, found.mask, found.positions) == ("input_ids", True, False)
    assert [tensor.past for tensor in found.cached] == [
        f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")
    ]
    assert {(tensor.shape, tensor.axis) for tensor in found.cached} == {((0, 2, 0, 16), 2)}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"input_ids": "words"}, "no input input_ids or decoder_input_ids"),
        ({"position_ids": "token_type_ids"}, "what to give for token_type_ids in each step"),
        ({"past_key_values.1.key": "past_key_values.7.key"}, r"no output 'present.7.key'"),
        ({f"past_key_values.{n}.{part}": "" for n in (0, 1) for part in ("key", "value")}, "no past_key_values"),
    ],
)
def test_models_that_generation_cannot_feed_are_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises(GenerateError, match=message):
        interface_of(changed(model_of("llama_tiny"), names))


def test_tokens_of_another_type_are_refused() -> None:
    model = changed(model_of("llama_tiny"))
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32
    with pytest.raises(GenerateError, match="'input_ids' holds int32, and generation feeds int64"):
        interface_of(model)


def test_a_model_without_logits_is_refused() -> None:
    model = changed(model_of("llama_tiny"))
    model.graph.output[0].name = "hidden"
    with pytest.raises(GenerateError, match="no output logits; its outputs are hidden"):
        interface_of(model)


def test_a_cache_of_unknown_heads_is_refused() -> None:
    model = changed(model_of("llama_tiny"))
    place = next(n for n, value in enumerate(model.graph.input) if value.name == "past_key_values.0.key")
    open_shape = ["batch", "heads", "past", 8]
    name = model.graph.input[place].name
    model.graph.input[place].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, open_shape))
    with pytest.raises(GenerateError, match=r"is \[batch, heads, past, 8\]"):
        interface_of(model)
