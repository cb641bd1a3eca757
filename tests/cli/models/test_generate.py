"""`smartmem generate`."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from bench.zoo.whisper import SHAPES, whisper
from tests.cli.test_commands import smartmem
from tests.decoding.models import by_onnxruntime, model_of

LEAST = SHAPES["whisper_least"]
DIM = ("--dim", "encoder_sequence_length=5")
PROMPT = [5, 7, 11]
GIVEN = ("--prompt-ids", "5,7,11", "--tokens", 6, "--bound", 48, "--block", 16)


@pytest.fixture(scope="module", autouse=True)
def kept_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans of one model with one set of options are made once for all of these tests, as for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMARTMEM_PLANS", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "llama.onnx"
    onnx.save(model_of("llama_tiny"), str(path))
    return path


def test_tokens_times_and_memory_are_printed(model: Path) -> None:
    result = smartmem("generate", model, *GIVEN)
    assert result.exit_code == 0, result.output
    expected = by_onnxruntime(model_of("llama_tiny"), PROMPT, 6).tokens
    assert " ".join(map(str, expected)) in result.stdout
    for text in ("first token after", "of weights", "256 bytes a token, at most 48 tokens"):
        assert text in result.stdout


def test_json(model: Path) -> None:
    stop = by_onnxruntime(model_of("llama_tiny"), PROMPT, 6).tokens[1]
    data = json.loads(smartmem("generate", model, *GIVEN, "--stop", stop, "--json").stdout)
    (found,) = data["sequences"]
    assert (found["prompt"], len(found["tokens"]), found["ended"], found["text"]) == (PROMPT, 2, True, None)
    memory = data["memory"]
    assert (memory["cache"], memory["cache_per_token"], memory["in_place"]) == (16 * 256, 256, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prompt-ids", "5,x"), "give numbers with commas between them"),
        ((), "give prompts, as numbers (--prompt-ids) or as texts"),
        (("--prompt", "words"), "give prompts, as numbers"),
        (("--prompt-ids", "96"), "the model has 96, from 0 on"),
        (("--prompt-ids", ""), "the prompt is empty"),
        (("--prompt-ids", "1", "--bound", "4"), "need a cache of 128, and it is bound to 4"),
        (("--prompt-ids", "1", "--top-p", "2"), "top_p cannot be 2"),
        (("--prompt-ids", "1", "--stop", "96"), "the stop token 96 is no token; the model has 96"),
        (("--prompt-ids", "1", "--dim", "batch=2"), "batch is no open extent of a further input"),
    ],
)
def test_bad_input(model: Path, options: tuple[str, ...], message: str) -> None:
    result = smartmem("generate", model, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.exhaustive
def test_further_inputs_are_read_from_files(tmp_path: Path) -> None:
    model, states = whisper(LEAST, heard=True), np.ones((1, 5, LEAST.width), np.float32)
    onnx.save(model, str(tmp_path / "heard.onnx"))
    np.save(tmp_path / "states.npy", states)
    given = ("--input", f"encoder_hidden_states={tmp_path / 'states.npy'}", "--cache", "int8")
    result = smartmem("generate", tmp_path / "heard.onnx", *GIVEN, *given, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    expected = by_onnxruntime(model, PROMPT, 6, {"encoder_hidden_states": states})
    assert expected.agrees(data["sequences"][0]["tokens"], 0.5)
    assert data["memory"]["cache_type"] == "int8"


def test_missing_inputs_are_named(tmp_path: Path) -> None:
    onnx.save(whisper(LEAST, heard=True), str(tmp_path / "heard.onnx"))
    for options, message in (((), "open extents encoder_sequence_length"), (DIM, "nothing is given for it")):
        result = smartmem("generate", tmp_path / "heard.onnx", *GIVEN, *options)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())


def test_a_model_without_a_cache_is_refused() -> None:
    path = "examples/models/dynamic/pythia_70m.onnx"
    result = smartmem("generate", path, "--prompt-ids", "1")
    assert result.exit_code == 2
    assert "no past_key_values.* inputs with present.* outputs" in result.output


@pytest.mark.skipif(importlib.util.find_spec("tokenizers") is not None, reason="tokenizers is installed here")
def test_texts_without_the_package_are_refused(model: Path, tmp_path: Path) -> None:
    result = smartmem("generate", model, "--tokenizer", tmp_path, "--prompt", "words")
    assert result.exit_code == 2
    assert "pip install 'smartmem-rules[tokenizers]'" in result.output


def test_texts(model: Path, tmp_path: Path) -> None:
    tokenizers: Any = pytest.importorskip("tokenizers")
    vocabulary = {f"w{number}": number for number in range(96)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    expected = by_onnxruntime(model_of("llama_tiny"), PROMPT, 6).tokens
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": expected[4]}))
    given = ("--tokenizer", tmp_path, "--prompt", "w5 w7 w11", *GIVEN[2:])
    (found,) = json.loads(smartmem("generate", model, *given, "--json").stdout)["sequences"]
    end = expected.index(expected[4])
    assert found["text"] == " ".join(f"w{token}" for token in expected[:end])
    assert found["ended"]
    assert found["text"] in smartmem("generate", model, *given).stdout
