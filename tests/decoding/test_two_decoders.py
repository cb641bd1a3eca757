"""Models of two decoders, as optimum exports them: as two files, and merged by an `If`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import smartmem_rules as sm
from bench.zoo.two_decoders import Two, merged, two_decoders
from bench.zoo.whisper import SHAPES, whisper
from smartmem_rules.cli import main
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.errors import SmartmemError
from tests.decoding.conftest import BLOCK, BOUND
from tests.decoding.models import Expected, by_onnxruntime, model_of

PROMPT = [5, 7, 11]
PROMPTS = [PROMPT, [1] * 17, [9]]
PLACES = 12
EXTENTS = {"encoder_sequence_length": PLACES}


@cache
def two(name: str) -> Two:
    return two_decoders(name)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def generator_of(name: str, form: str, **options: Any) -> Generator:
    if form == "merged":
        return Generator(merged(two(name)), bound=BOUND, block=BLOCK, **options)
    return Generator(two(name).prompts, bound=BOUND, block=BLOCK, with_past=two(name).tokens, **options)


def expected(name: str, prompt: list[int], tokens: int, further: dict[str, Any] | None = None) -> Expected:
    return by_onnxruntime(two(name).prompts, prompt, tokens, further, two(name).tokens)


def states(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"encoder_hidden_states": random.standard_normal((1, PLACES, SHAPES["whisper_least"].width), np.float32)}


FORMS = [
    pytest.param("llama_tiny", "files"),
    pytest.param("llama_tiny", "merged"),
    pytest.param("pythia_tiny", "files", marks=pytest.mark.exhaustive),
    pytest.param("pythia_tiny", "merged", marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_tokens_are_those_of_onnxruntime_and_of_the_whole_model(name: str, form: str) -> None:
    generator = generator_of(name, form)
    tokens = BOUND - len(PROMPT) + 1
    (found,) = generator.generate(PROMPT, tokens)
    assert expected(name, PROMPT, tokens).agrees(found)
    assert by_onnxruntime(model_of(name), PROMPT, tokens).agrees(found)
    assert generator.plans.facts.growth.in_place
    prompts, later = (executor.built.memory.shared for executor in generator.plans.executors)
    assert {id(held) for held in prompts.values()} == {id(held) for held in later.values()}  # called otherwise


@pytest.mark.parametrize("form", ["files", "merged"])
def test_an_encoders_keys_go_from_the_first_decoder_to_the_second(form: str) -> None:
    generator = generator_of("whisper_least", form, dims=EXTENTS)
    for seed in (0, 1, 0):
        (found,) = generator.generate(PROMPT, 24, inputs=states(seed))
        assert expected("whisper_least", PROMPT, 24, states(seed)).agrees(found)
    assert [one.name for one in generator.plans.facts.once] == ["present.0.encoder.key", "present.0.encoder.value"]


def with_places(model: onnx.ModelProto) -> onnx.ModelProto:
    """The places of new tokens are an input, as transformers 4.43 to 4.45 had it for Whisper."""
    made = copied(model)
    new = [node for node in made.graph.node if node.op_type == "Range" and node.input[0] != named(made, 0)]
    assert len(new) == 2
    for node in new:
        node.CopyFrom(helper.make_node("Identity", ["cache_position"], list(node.output), node.name))
    made.graph.input.append(helper.make_tensor_value_info("cache_position", TensorProto.INT64, ["sequence_length"]))
    return made


def named(model: onnx.ModelProto, value: int) -> str:
    """The name of a whole number."""
    return next(one.name for one in model.graph.initializer if f"whole_{value}" in one.name)


@pytest.mark.parametrize("form", ["files", "merged", "whole"])
def test_places_in_the_cache_may_be_an_input(form: str) -> None:
    both = Two(prompts=two("whisper_least").prompts, tokens=with_places(two("whisper_least").tokens))
    model = {"files": both.prompts, "merged": merged(both), "whole": with_places(whole_whisper())}[form]
    behind = both.tokens if form == "files" else None
    generator = Generator(model, bound=BOUND, block=BLOCK, dims=EXTENTS, with_past=behind)
    (found,) = generator.generate(PROMPT, 24, inputs=states(0))
    assert expected("whisper_least", PROMPT, 24, states(0)).agrees(found)
    assert by_onnxruntime(with_places(whole_whisper()), PROMPT, 24, states(0)).agrees(found)


def whole_whisper() -> onnx.ModelProto:
    return whisper(SHAPES["whisper_least"], heard=True)


@pytest.mark.exhaustive
def test_a_batch_and_a_session_of_two_files() -> None:
    generator = generator_of("llama_tiny", "files", sequences=3)
    for prompt, found in zip(PROMPTS, generator.generate(PROMPTS, 24), strict=True):
        assert expected("llama_tiny", prompt, 24).agrees(found)
    with generator_of("llama_tiny", "merged").session() as session:
        first = session.generate(PROMPT, 6)
        later = session.generate([9, 4], 6)
    assert expected("llama_tiny", [*PROMPT, *first, 9, 4], 6).agrees(later)


def test_the_command_takes_the_second_file(tmp_path: Path) -> None:
    paths = [tmp_path / "decoder_model.onnx", tmp_path / "decoder_with_past_model.onnx"]
    for path, model in zip(paths, (two("llama_tiny").prompts, two("llama_tiny").tokens), strict=True):
        onnx.save(model, str(path))
    words = ["generate", str(paths[0]), "--with-past", str(paths[1]), "--prompt-ids", "5,7,11", "--tokens", "6"]
    ran = CliRunner().invoke(main, [*words, "--bound", str(BOUND), "--json"])
    assert ran.exit_code == 0, ran.output
    assert expected("llama_tiny", PROMPT, 6).agrees(json.loads(ran.output)["sequences"][0]["tokens"])
    ran = CliRunner().invoke(main, ["generate", str(paths[0]), "--prompt-ids", "5"])
    assert ran.exit_code == 2
    assert "give the model behind it as well (with_past, --with-past FILE)" in " ".join(ran.output.split())


# --- what is refused ---


def with_other_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Weights of another seed."""
    made = copied(model)
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.dims:
            array = np.random.default_rng(9).standard_normal(tuple(tensor.dims), np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made


def with_fewer_tokens(model: onnx.ModelProto) -> onnx.ModelProto:
    made = copied(model)
    (table,) = (one for one in made.graph.initializer if one.name == "onnx::embed.weight_behind")
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table)[:90], table.name))
    return made


def with_other_heads(model: onnx.ModelProto) -> onnx.ModelProto:
    made = copied(model)
    for value in made.graph.input:
        if value.name == "past_key_values.1.key":
            value.type.tensor_type.shape.dim[1].dim_value = 4
    return made


def of_another_layer(model: onnx.ModelProto) -> onnx.ModelProto:
    """What it gives of its first layer has another name."""
    made = copied(model)
    for node in made.graph.node:
        node.output[0] = node.output[0].replace("present.0.", "present.7.")
        for place, name in enumerate(node.input):
            node.input[place] = name.replace("present.0.", "present.7.")
    for value in made.graph.output:
        value.name = value.name.replace("present.0.", "present.7.")
    return made


LLAMA, PYTHIA = two("llama_tiny"), two("pythia_tiny")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (LLAMA.prompts, None, r"it gives a cache, so give the model behind it as well \(with_past"),
        (LLAMA.tokens, None, "takes one token of each sequence, and a prompt has several; give the model for prompts"),
        (
            LLAMA.tokens,
            LLAMA.prompts,
            "'past_key_values.0.key'; give it alone, or .* the other way round",
        ),
        (merged(LLAMA), LLAMA.tokens, "has the input 'past_key_values.0.key'; give it alone"),
        (LLAMA.prompts, with_other_weights(LLAMA.tokens), "no weight of the first is one of the second"),
        (LLAMA.prompts, with_fewer_tokens(LLAMA.tokens), "one knows 96 tokens, and the other 90"),
        (LLAMA.prompts, with_other_heads(LLAMA.tokens), r"gives 'present.1.key' \[batch_size, 2, .* \[batch_size, 4, "),
        (of_another_layer(LLAMA.prompts), LLAMA.tokens, "the first gives 'present.7.key', and the one behind"),
        (PYTHIA.prompts, LLAMA.tokens, r"'present.0.key' \[batch_size, 2, sequence_length, 16\], .*, 8\]"),
        (two("whisper_least").prompts, LLAMA.tokens, "the first gives 'present.0.decoder.key', and the one behind"),
    ],
)
def test_files_that_are_no_pair_are_refused_before_anything_runs(
    first: onnx.ModelProto, second: onnx.ModelProto | None, said: str
) -> None:
    with pytest.raises(GenerateError, match=said):
        Generator(first, bound=BOUND, with_past=second)


def test_a_first_decoder_that_gives_too_little_is_refused() -> None:
    first = copied(LLAMA.prompts)
    kept = onnx.GraphProto(output=[one for one in first.graph.output if one.name != "present.1.key"])
    del first.graph.output[:]
    first.graph.output.extend(kept.output)
    with pytest.raises(GenerateError, match=r"takes 'past_key_values.1.key', and the first has no output 'present.1.k"):
        Generator(first, bound=BOUND, with_past=LLAMA.tokens)


def test_keys_that_the_second_keeps_and_the_first_computes_of_tokens_are_refused() -> None:
    both = two("whisper_least")
    first = copied(both.prompts)
    (node,) = (node for node in first.graph.node if "present.0.encoder.key" in node.output)
    node.output[0] = "keys"
    first.graph.node.append(helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT))
    first.graph.node.append(helper.make_node("ReduceSum", ["numbers"], ["number"], keepdims=0))
    first.graph.node.append(helper.make_node("Mul", ["keys", "number"], ["present.0.encoder.key"]))
    with pytest.raises(GenerateError, match=r"leaves present\.0\.encoder\.key as it is, and the first computes"):
        Generator(first, bound=BOUND, with_past=both.tokens, dims=EXTENTS)


def test_an_input_that_chooses_more_than_one_branch_is_refused() -> None:
    model = merged(LLAMA)
    model.graph.node.append(helper.make_node("Not", ["use_cache_branch"], ["other"], "inverse"))
    with pytest.raises(GenerateError, match="of one If, and it is read by If 'optimum::if', Not 'inverse'"):
        Generator(model, bound=BOUND)


def test_what_is_no_model_is_refused_as_the_second_file(tmp_path: Path) -> None:
    with pytest.raises(SmartmemError, match="there is no such file"):
        Generator(LLAMA.prompts, bound=BOUND, with_past=tmp_path / "none.onnx")
    with pytest.raises(TypeError, match="with_past is 5; give a path"):
        Generator(LLAMA.prompts, bound=BOUND, with_past=5)  # type: ignore[arg-type]
    with pytest.raises(GenerateError, match="a generator has its two models already"):
        sm.generate(generator_of("llama_tiny", "files"), PROMPT, 2, with_past=LLAMA.tokens)
