"""A cache that is rounded to 8 bits: how far it is off, and what is generated with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pyopencl as cl
import pytest

from smartmem_rules.decoding.choosing import Array
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.decoding.model.parts import ROUNDED
from tests.decoding.models import by_onnxruntime, model_of

BOUND, BLOCK = 48, 16
PROMPTS = [[5, 7, 11], [1] * 17, [9]]
NEAR = 0.5
"""Logits, with a deviation of 3 to 8, that a rounded cache may exchange."""


@pytest.fixture(scope="module")
def rounded() -> Generator:
    return Generator(model_of("grouped_tiny"), sequences=3, bound=BOUND, block=BLOCK, cache=ROUNDED)


def held(generator: Generator) -> dict[str, Array]:
    """What lies in the buffers of a cache, [positions, sequences, heads, channels]."""
    found = {}
    with generator.plans.executors[0].taken() as context:
        for part in generator.plans.parts:
            shape = (generator.cache.length, generator.sizes.sequences, *part.shape)
            found[part.input] = np.empty(shape, onnx.helper.tensor_dtype_to_np_dtype(part.dtype))
            cl.enqueue_copy(context.queue, found[part.input], generator.cache.buffers[part.input])
    return found


def presents(model: onnx.ModelProto, prompt: Sequence[int]) -> dict[str, Array]:
    """The cache behind a prompt by ONNX Runtime, [positions, heads, channels], by the names of our buffers."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"input_ids": np.array([prompt]), "attention_mask": np.ones((1, len(prompt)), np.int64)}
    feeds |= {
        value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
        for value in session.get_inputs()
        if value.name.startswith("past")
    }
    names = [value.name for value in session.get_outputs() if value.name.startswith("present")]
    found = zip(names, session.run(names, feeds), strict=True)
    return {f"decoding.{name.replace('present', 'past_key_values')}": np.moveaxis(one[0], 1, 0) for name, one in found}


def test_what_is_kept_is_off_by_half_a_step_at_most(rounded: Generator) -> None:
    stream = rounded.stream(PROMPTS, 8)
    next(stream)
    found = held(rounded)
    stream.close()
    for number, prompt in enumerate(PROMPTS):
        for name, wanted in presents(model_of("grouped_tiny"), prompt).items():
            scale, integers = (found[one][: len(prompt), number] for one in (f"{name}.scale", name))
            largest = np.abs(wanted).max(axis=-1, keepdims=True)
            assert np.allclose(scale, largest / 127, rtol=1e-5, atol=0)
            assert (np.abs(integers * scale - wanted) <= largest / 254 + 1e-5).all()


@pytest.mark.parametrize(
    "name",
    ["grouped_tiny", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in ("llama_tiny", "pythia_tiny"))],
)
def test_tokens_are_those_of_the_whole_cache_but_for_near_logits(name: str, request: pytest.FixtureRequest) -> None:
    given = request.getfixturevalue("rounded") if name == "grouped_tiny" else None
    generator = given or Generator(model_of(name), sequences=3, bound=BOUND, block=BLOCK, cache=ROUNDED)
    for prompt, tokens in zip(PROMPTS, generator.generate(PROMPTS, 24), strict=True):
        assert by_onnxruntime(model_of(name), prompt, 24).agrees(tokens, NEAR)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["pythia_small", "llama_small", "grouped_small"])
def test_256_tokens_are_those_of_the_whole_cache_but_for_near_logits(name: str) -> None:
    prompt = PROMPTS[0]
    (found,) = Generator(model_of(name), bound=512, cache=ROUNDED).generate(prompt, 256)
    assert by_onnxruntime(model_of(name), prompt, 256).agrees(found, NEAR)


def test_a_token_takes_a_quarter_and_the_scales(rounded: Generator) -> None:
    rows = 3 * 2 * 2 * 2  # of sequences, layers, keys and values, heads
    assert rounded.cache.bytes_per_token == rows * (16 + 4)


def test_a_cache_that_is_written_anew_is_not_rounded_again_and_again() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(model_of("llama_tiny"))
    node = next(node for node in model.graph.node if "present.0.key" in node.output)
    node.input[0], node.input[1] = node.input[1], node.input[0]
    with pytest.raises(GenerateError, match="writes its whole cache anew in each step, so that int8 would round it"):
        Generator(model, bound=BOUND, cache=ROUNDED)


def test_an_unknown_type_of_cache_is_refused() -> None:
    with pytest.raises(GenerateError, match="no cache of type 'int4'; give model or int8"):
        Generator(model_of("llama_tiny"), bound=BOUND, cache="int4")
