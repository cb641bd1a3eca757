"""Further inputs that stay the same over the steps: Whisper's encoder, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import smartmem_rules as sm
from bench.zoo.whisper import SHAPES, whisper
from smartmem_rules.decoding.choosing import Array
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.decoding.model.interface import interface_of
from smartmem_rules.decoding.model.unchanging import computed_once, keep_needed
from tests.decoding.models import by_onnxruntime

LEAST = SHAPES["whisper_least"]
BOUND = 48
PROMPT = [5, 7, 11]
EXTENTS = {"encoder_sequence_length": LEAST.frames // 2}


def sound(seed: int, sequences: int = 1) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {"input_features": random.standard_normal((sequences, LEAST.bins, LEAST.frames), np.float32)}


def states(seed: int, places: int = LEAST.frames // 2) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {"encoder_hidden_states": random.standard_normal((1, places, LEAST.width), np.float32)}


@pytest.fixture(scope="module")
def heard() -> onnx.ModelProto:
    """The decoder alone."""
    return whisper(LEAST, heard=True)


@pytest.fixture(scope="module")
def generator(heard: onnx.ModelProto) -> Generator:
    return Generator(heard, bound=BOUND, block=16, dims=EXTENTS)


def test_tokens_are_those_of_onnxruntime_for_each_input(heard: onnx.ModelProto, generator: Generator) -> None:
    found = [generator.generate(PROMPT, 40, inputs=states(seed))[0] for seed in (0, 1, 0)]
    for seed in (0, 1):
        assert by_onnxruntime(heard, PROMPT, 40, states(seed)).agrees(found[seed])
    assert found[0] == found[2] != found[1]


@pytest.mark.exhaustive
def test_the_encoder_is_no_part_of_the_steps() -> None:
    model = whisper(LEAST)
    generator = Generator(model, bound=BOUND)
    (found,) = generator.generate(PROMPT, 40, inputs=sound(0))
    assert by_onnxruntime(model, PROMPT, 40, sound(0)).agrees(found)
    once, prefill, decode = (executor.plan for executor in generator.plans.executors)
    assert once.inputs == ["input_features"]
    assert len(once.outputs) == 2 * LEAST.layers
    for plan in (prefill, decode):
        assert set(once.outputs) <= set(plan.inputs)
        assert "input_features" not in plan.inputs
        assert not any(name.startswith("encoder.") for name in plan.tensors)


def test_keys_of_states_are_computed_once(heard: onnx.ModelProto) -> None:
    assert len(computed_once(heard.graph, interface_of(heard))) == 2 * LEAST.layers
    assert len(computed_once((model := whisper(LEAST)).graph, interface_of(model))) == 2 * LEAST.layers


def test_what_is_drawn_is_drawn_in_each_step() -> None:
    model = whisper(LEAST, heard=True)
    node = next(node for node in model.graph.node if "encoder_hidden_states" in node.input)
    place = next(n for n, one in enumerate(model.graph.node) if one.name == node.name)
    node.input[0] = "drawn"
    model.graph.node.insert(place, helper.make_node("RandomNormalLike", ["encoder_hidden_states"], ["drawn"]))
    assert len(computed_once(model.graph, interface_of(model))) == 2 * LEAST.layers - 1


@pytest.mark.exhaustive
def test_open_extents_are_those_of_the_arrays(heard: onnx.ModelProto) -> None:
    (found,) = sm.generate(heard, PROMPT, 24, bound=BOUND, inputs=states(3, places=7))
    assert by_onnxruntime(heard, PROMPT, 24, states(3, places=7)).agrees(found)


@pytest.mark.exhaustive
def test_keys_and_values_of_an_encoder_as_inputs() -> None:
    model = whisper(LEAST, heard=True)
    names = computed_once(model.graph, interface_of(model))
    inputs, random = {}, np.random.default_rng(4)
    for name, part in zip(names, ("value", "key"), strict=True):
        node = next(node for node in model.graph.node if name in node.output)
        node.output[0] = f"{name}.left"
        shape = (1, LEAST.heads, *((LEAST.channels, 9) if part == "key" else (9, LEAST.channels)))
        inputs[new := f"past_key_values.0.encoder.{part}"] = random.standard_normal(shape, np.float32)
        model.graph.input.append(helper.make_tensor_value_info(new, TensorProto.FLOAT, ["batch_size", *shape[1:]]))
        for other in model.graph.node:
            for place, read in enumerate(other.input):
                other.input[place] = new if read == name else read
    kept = onnx.GraphProto()
    kept.CopyFrom(model.graph)
    kept.input.remove(next(one for one in kept.input if one.name == "encoder_hidden_states"))
    keep_needed(kept)
    model.graph.CopyFrom(kept)
    generator = Generator(model, bound=BOUND)
    assert not generator.plans.facts.once
    (found,) = generator.generate(PROMPT, 24, inputs=inputs)
    assert by_onnxruntime(model, PROMPT, 24, inputs).agrees(found)


@pytest.mark.exhaustive
def test_a_batch_of_sounds_with_a_rounded_cache() -> None:
    model = whisper(LEAST)
    both = {name: np.concatenate([array, sound(1)[name]]) for name, array in sound(0).items()}
    generator = Generator(model, sequences=2, bound=BOUND, cache="int8")
    for seed, found in enumerate(generator.generate([PROMPT, [3, 2, 1]], 24, inputs=both)):
        assert by_onnxruntime(model, [PROMPT, [3, 2, 1]][seed], 24, sound(seed)).agrees(found, 0.5)


@pytest.mark.exhaustive
def test_256_tokens_at_the_sizes_of_a_published_model_are_those_of_onnxruntime() -> None:
    shape = SHAPES["whisper_tiny"]
    model = whisper(shape, heard=True)
    random = np.random.default_rng(0)
    inputs = {"encoder_hidden_states": random.standard_normal((1, shape.frames // 2, shape.width), np.float32)}
    (found,) = sm.generate(model, PROMPT, 256, bound=300, inputs=inputs)
    assert by_onnxruntime(model, PROMPT, 256, inputs).agrees(found)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, r"the further input encoder_hidden_states \[1, 12, 32\], and nothing is given"),
        ({"sounds": 1}, "sounds is no further input of the model; it has encoder_hidden_states"),
        (states(0, places=11), r"is float32 \[1, 11, 32\], and has to be float32 \[1, 12, 32\]"),
        ({"encoder_hidden_states": np.zeros((1, 12, 32))}, r"is float64 \[1, 12, 32\], and has to be float32"),
        ({"encoder_hidden_states": "loud"}, r"and has to be float32 \[1, 12, 32\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    generator: Generator, inputs: Mapping[str, Any] | None, message: str
) -> None:
    with pytest.raises(GenerateError, match=message):
        generator.generate(PROMPT, 4, inputs=inputs)
    assert len(generator.generate(PROMPT, 4, inputs=states(0))[0]) == 4


def test_extents_that_are_missing_or_unknown_are_named(heard: onnx.ModelProto) -> None:
    with pytest.raises(GenerateError, match="have the open extents encoder_sequence_length; give them"):
        Generator(heard, bound=BOUND)
    with pytest.raises(GenerateError, match="frames is no open extent of a further input"):
        Generator(heard, bound=BOUND, dims={**EXTENTS, "frames": 3})
    with pytest.raises(GenerateError, match="the extent encoder_sequence_length cannot be 0"):
        Generator(heard, bound=BOUND, dims={"encoder_sequence_length": 0})


def test_an_input_that_grows_with_the_tokens_is_refused() -> None:
    model = whisper(LEAST)
    model.graph.input.append(
        helper.make_tensor_value_info("kinds", TensorProto.INT64, ["batch_size", "sequence_length"])
    )
    with pytest.raises(GenerateError, match="what to give for kinds in each step"):
        Generator(model, bound=BOUND)
