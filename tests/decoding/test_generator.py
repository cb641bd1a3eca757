"""Tokens beside those of ONNX Runtime, streams, stop tokens, seeds, and what is refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import smartmem_rules as sm
from smartmem_rules.decoding.errors import CacheFullError, GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.decoding.model.growth import BEHIND, COUNTED, Growth
from smartmem_rules.graph.zoo import materialized_model
from smartmem_rules.limits import LimitError, Limits
from tests.decoding.conftest import BOUND
from tests.decoding.models import by_onnxruntime, model_of

PROMPT = [5, 7, 11]
PROMPTS = [PROMPT, [1] * 17, [9]]
"""Of different lengths: the longest leaves a block of the cache."""


def test_greedy_tokens_are_those_of_onnxruntime_until_the_cache_is_full(llama: Generator) -> None:
    tokens = BOUND - len(PROMPT) + 1
    (found,) = llama.generate(PROMPT, tokens)
    assert by_onnxruntime(model_of("llama_tiny"), PROMPT, tokens).agrees(found)
    assert llama.cache.capacity == BOUND


@pytest.mark.exhaustive
def test_half_precision_chooses_the_same_tokens_up_to_its_rounding() -> None:
    generator = Generator(model_of("llama_tiny"), bound=BOUND, dtype="float16")
    (found,) = generator.generate(PROMPT, 24)
    assert {executor.plan.dtype for executor in generator.plans.executors} == {"float16"}
    assert by_onnxruntime(model_of("llama_tiny"), PROMPT, 24).agrees(found, 0.05)


@pytest.mark.parametrize("name", ["pythia", pytest.param("grouped", marks=pytest.mark.exhaustive)])
def test_a_batch_gives_what_each_prompt_gives_alone(name: str, request: pytest.FixtureRequest) -> None:
    generator: Generator = request.getfixturevalue(name)
    found = generator.generate(PROMPTS, 24)
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        assert by_onnxruntime(model_of(f"{name}_tiny"), prompt, 24).agrees(tokens)


def test_joined_caches_and_counted_ones_are_written_in_place(llama: Generator, grouped: Generator) -> None:
    assert llama.plans.facts.growth == Growth(kind=BEHIND)
    assert grouped.plans.facts.growth == Growth(kind=COUNTED, counts="seqlens_k")
    assert not grouped.cache.spare


def test_both_plans_share_the_weights_that_are_packed_alike(llama: Generator) -> None:
    llama.prepare()
    prefill, decode = (executor.built.memory.shared for executor in llama.plans.executors)
    assert prefill["embed.weight"] is decode["embed.weight"]


def test_a_stream_gives_the_same_tokens_and_can_be_left(llama: Generator) -> None:
    (whole,) = llama.generate(PROMPT, 6)
    stream = llama.stream(PROMPT, 6)
    assert [next(stream), next(stream)] == [(whole[0],), (whole[1],)]
    with pytest.raises(GenerateError, match="in use"):
        llama.generate(PROMPT, 6)
    stream.close()
    assert llama.generate(np.array(PROMPT), 6) == [whole]


def test_a_cache_that_grows_leaves_nothing_behind(llama: Generator) -> None:
    llama.cache.capacity = 0  # it takes new memory
    stream = llama.stream(PROMPT, 20)
    next(stream)
    held = next(iter(llama.cache.buffers.values()))
    assert len(list(stream)) == 19
    assert held is not next(iter(llama.cache.buffers.values()))
    assert sys.getrefcount(held) == 2  # the variable, and the argument of the call


def test_a_stop_token_ends_its_sequence_alone(pythia: Generator) -> None:
    whole = pythia.generate(PROMPTS, 8)
    stop = whole[0][2]
    found = pythia.generate(PROMPTS, 8, stop=[stop])
    for tokens, own in zip(found, whole, strict=True):
        assert tokens == (own[: own.index(stop) + 1] if stop in own else own)
    steps = list(pythia.stream(PROMPTS, 8, stop=[stop]))
    assert steps[3][0] is None


def test_a_seed_draws_the_same_tokens_again_from_the_best(llama: Generator) -> None:
    sampling = sm.Sampling(temperature=2.0, top_k=4, seed=3)
    drawn = llama.generate(PROMPT, 12, sampling)
    assert drawn == llama.generate(PROMPT, 12, sampling)
    assert drawn != llama.generate(PROMPT, 12, sm.Sampling(temperature=2.0, top_k=4, seed=4))


def test_tokens_without_an_end_stop_at_the_bound_with_an_error(llama: Generator) -> None:
    stream = llama.stream([3] * (BOUND - 2), None)
    found = []
    with pytest.raises(CacheFullError, match=f"bound to {BOUND} tokens"):
        found.extend(stream)
    assert len(found) == 3
    assert len(llama.generate(PROMPT, 2)[0]) == 2


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([], {}, "the prompt is empty"),
        ([1] * BOUND, {}, f"{BOUND} tokens, and the cache is bound to {BOUND}"),
        ([1, 96], {}, "the token 96 at place 1, and the model has 96"),
        ([1, -1], {}, "the token -1 at place 1"),
        ([1, "a"], {}, "'a' at place 1, which is no token number"),
        ([[1], [2]], {}, "2 prompts are given to a generator of 1 sequences"),
        ([1.5], {}, "1.5 at place 0, which is no token number"),
        (5, {}, "5 is no prompt"),
        (None, {}, "None is no prompt"),
        ("abc", {}, "'abc' is no prompt"),
        ([[1], 2], {}, "is no prompt"),
        ([1, 2], {"tokens": 0}, "the number of tokens cannot be 0"),
        ([1, 2], {"tokens": "4"}, "the number of tokens cannot be '4'"),
        ([1, 2], {"tokens": 2.5}, "the number of tokens cannot be 2.5"),
        ([1, 2], {"stop": 5}, "5 is no list of stop tokens"),
        ([1, 2], {"stop": [None]}, "the stop token None is no token"),
        ([1, 2], {"stop": [96]}, "the stop token 96 is no token; the model has 96"),
        ([1, 2], {"tokens": BOUND}, f"need a cache of {BOUND + 1}"),
        ([1], {"sampling": sm.Sampling(temperature=-1.0)}, "the temperature cannot be -1"),
        ([1], {"sampling": sm.Sampling(temperature=1.0, top_k=97)}, "the model has 96 tokens"),
        ([1], {"sampling": sm.Sampling(temperature=1.0, top_p=0.0)}, "top_p cannot be 0"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_runs(
    llama: Generator, prompt: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(GenerateError, match=message):
        llama.generate(prompt, **{"tokens": 4, **options})
    assert len(llama.generate(PROMPT, 2)[0]) == 2


def test_a_bound_beyond_the_positions_of_the_model_is_refused() -> None:
    with pytest.raises(GenerateError, match="the model knows 1024 positions"):
        Generator(model_of("llama_tiny"), bound=2000)


def test_a_bound_beyond_the_tables_of_angles_is_refused() -> None:
    with pytest.raises(GenerateError, match=r"GroupQueryAttention(.|\n)*give a bound below 1025"):
        Generator(model_of("grouped_tiny"), bound=1025)


def test_a_bound_beyond_all_tensors_is_refused_as_a_bound() -> None:
    with pytest.raises(GenerateError, match=r"bound to 1000000000 tokens .* give a shorter bound"):
        Generator(model_of("llama_tiny"), bound=10**9)


def test_a_model_that_is_too_large_by_itself_is_not_blamed_on_the_bound() -> None:
    with pytest.raises(LimitError, match="nodes"):
        Generator(model_of("llama_tiny"), bound=BOUND, limits=Limits(nodes=3))


@pytest.mark.parametrize("name", ["sequences", "bound", "block"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(GenerateError, match=f"{name} cannot be 0"):
        Generator(model_of("llama_tiny"), **{name: 0})


@pytest.mark.exhaustive
def test_a_model_without_a_mask_takes_prompts_of_one_length_only() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(model_of("llama_tiny"))
    inputs = [value for value in model.graph.input if value.name != "position_ids"]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    # the positions are those behind the cache
    shape = helper.make_node("Shape", ["past_key_values.0.key"], ["p.shape"])
    one = helper.make_node("Constant", [], ["p.axis"], value_ints=[2])
    start = helper.make_node("Gather", ["p.shape", "p.axis"], ["p.start"])
    length = helper.make_node("Shape", ["input_ids"], ["p.tokens"], start=1)
    zero = helper.make_node("Constant", [], ["p.zero"], value=helper.make_tensor("z", TensorProto.INT64, [], [0]))
    step = helper.make_node("Constant", [], ["p.one"], value=helper.make_tensor("o", TensorProto.INT64, [], [1]))
    scalar = helper.make_node("Squeeze", ["p.tokens"], ["p.count"])
    counted = helper.make_node("Range", ["p.zero", "p.count", "p.one"], ["p.counted"])
    moved = helper.make_node("Add", ["p.counted", "p.start"], ["p.moved"])
    first = helper.make_node("Constant", [], ["p.first"], value_ints=[0])
    made = helper.make_node("Unsqueeze", ["p.moved", "p.first"], ["position_ids"])
    new = [shape, one, start, length, zero, step, scalar, counted, moved, first, made]
    nodes = [*new, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    generator = Generator(model, sequences=2, bound=BOUND, block=BOUND)
    with pytest.raises(GenerateError, match="the prompts have 1, 2 tokens"):
        generator.generate([[1], [1, 2]], 2)
    found = generator.generate([[1, 4], [1, 2]], 8)
    for prompt, tokens in zip([[1, 4], [1, 2]], found, strict=True):
        assert by_onnxruntime(model_of("llama_tiny"), prompt, 8).agrees(tokens)


def test_a_model_that_gives_logits_of_the_last_token_only_is_refused() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(model_of("llama_tiny"))
    (node,) = (node for node in model.graph.node if "logits" in node.output)
    node.output[0] = "all"
    ends = [("-1", [-1]), ("end", [np.iinfo(np.int64).max]), ("axis", [1])]
    model.graph.initializer.extend(helper.make_tensor(name, TensorProto.INT64, [1], value) for name, value in ends)
    model.graph.node.append(helper.make_node("Slice", ["all", "-1", "end", "axis"], ["logits"]))
    with pytest.raises(GenerateError, match=r"the output logits is \[1, 1, 96\]"):
        Generator(model, bound=BOUND).generate(PROMPT, 2)


@pytest.mark.exhaustive
def test_masks_of_infinity_take_prompts_of_one_length_only() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(model_of("llama_tiny"))
    (least,) = (tensor for tensor in model.graph.initializer if tensor.name == "least")
    least.raw_data = np.array(-np.inf, np.float32).tobytes()
    generator = Generator(model, sequences=2, bound=BOUND, block=BOUND)
    with pytest.raises(GenerateError, match="no numbers for prompts that are padded"):
        generator.generate([[1], [1, 2]], 4)
    found = generator.generate([[1, 4], [1, 2]], 4)
    for prompt, tokens in zip([[1, 4], [1, 2]], found, strict=True):
        assert by_onnxruntime(model, prompt, 4).agrees(tokens)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("llama_tiny", 12),
        *(pytest.param(name, 256, marks=pytest.mark.exhaustive) for name in ("llama_tiny", "pythia_tiny")),
    ],
)
def test_models_that_transformers_exports(name: str, tokens: int) -> None:
    path = f"examples/models/cached/{name}.onnx"
    generator = Generator(path, sequences=2, bound=300)
    assert generator.plans.facts.growth.kind == BEHIND
    found = generator.generate([PROMPT, [9]], tokens)
    for prompt, one in zip([PROMPT, [9]], found, strict=True):
        assert by_onnxruntime(materialized_model(path), prompt, tokens).agrees(one)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["pythia_small", "llama_small", "grouped_small"])
@pytest.mark.parametrize("weights", ["float32", "int4"])
def test_256_tokens_are_those_of_onnxruntime(name: str, weights: str) -> None:
    model = model_of(name) if weights == "float32" else sm.quantize(model_of(name), weights=weights)
    expected = [by_onnxruntime(model, prompt, 256) for prompt in PROMPTS]
    alone = Generator(model, bound=512)
    for prompt, one in zip(PROMPTS, expected, strict=True):
        assert one.agrees(alone.generate(prompt, 256)[0])
    for tokens, one in zip(sm.generate(model, PROMPTS, 256, bound=512), expected, strict=True):
        assert one.agrees(tokens)
