"""What a plan takes on its device."""

from __future__ import annotations

from bench.zoo.decoders import SHAPES, decoder
from smartmem_rules.api import plan_only
from smartmem_rules.explanation.device_bytes import device_bytes_of

DIMS = {"batch_size": 2, "sequence_length": 1, "past_sequence_length": 7, "past_sequence_length + sequence_length": 8}


def test_a_token_takes_a_row_of_keys_and_of_values_in_each_layer() -> None:
    shape = SHAPES["llama_tiny"]
    plan = plan_only(decoder(shape), dims=DIMS)
    found = device_bytes_of(plan)
    assert found.cache_per_token == 2 * shape.layers * 2 * shape.kv_heads * shape.channels * 4
    assert found.weights >= 4 * shape.vocabulary * shape.width * 2
    assert found.intermediates == sum(slot.bytes for slot in plan.slots)


def test_a_model_without_a_cache_has_none() -> None:
    assert device_bytes_of(plan_only("examples/models/mmoe.onnx")).cache_per_token is None
