"""Turns of one sequence: each goes on behind all before it."""

from __future__ import annotations

from typing import Any

import pytest

import smartmem_rules as sm
from bench.zoo.whisper import SHAPES, whisper
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.decoding.session import Session
from smartmem_rules.decoding.steps import Steps
from smartmem_rules.runtime.contexts.memory import RunError
from tests.decoding.conftest import BLOCK, BOUND
from tests.decoding.models import by_onnxruntime, model_of

TURNS = ([5, 7, 11], [3], [9, 1, 4, 2])


def follow(session: Session, name: str, tie: float = 1e-4) -> None:
    """Take turns, each of which has to give what ONNX Runtime gives for all before it."""
    for prompt in TURNS:
        whole = [*session.tokens, *prompt]
        found = session.generate(prompt, 8)
        assert by_onnxruntime(model_of(name), whole, 8).agrees(found, tie)
        assert session.tokens == [*whole, *found]


def test_turns_give_what_the_whole_text_gives(llama: Generator) -> None:
    with llama.session() as session:
        follow(session, "llama_tiny")
    assert len(llama.generate([1], 3)[0]) == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "cache", "tie"), [("grouped_tiny", "model", 1e-4), ("pythia_tiny", "int8", 0.5)])
def test_turns_of_other_caches(name: str, cache: str, tie: float) -> None:
    with Generator(model_of(name), bound=BOUND, block=BLOCK, cache=cache).session() as session:
        follow(session, name, tie)


def test_a_turn_that_is_left_keeps_its_tokens(llama: Generator) -> None:
    with llama.session() as session:
        stream = session.stream(TURNS[0], 8)
        first = [next(stream), next(stream)]
        with pytest.raises(GenerateError, match="a turn of this session is being streamed"):
            session.generate([1], 2)
        with pytest.raises(GenerateError, match="this generator is in use"):
            llama.generate([1], 2)
        stream.close()
        assert session.tokens == [*TURNS[0], *first]
        found = session.generate([4], 4)
        assert by_onnxruntime(model_of("llama_tiny"), [*TURNS[0], *first, 4], 4).agrees(found)
        rest = session.stream([1], 8)
        next(rest)
    assert list(rest) == []
    with pytest.raises(GenerateError, match="this session is over"):
        session.generate([1], 2)


def test_a_stop_token_ends_a_turn_and_not_the_session(llama: Generator) -> None:
    (whole,) = llama.generate(TURNS[0], 4)
    with llama.session(stop=[whole[1]]) as session:
        assert session.generate(TURNS[0], 4) == whole[: whole.index(whole[1]) + 1]
        (expected,) = llama_tokens(session.tokens, [6])
        assert session.generate([6], 1) == [expected]


def llama_tokens(before: list[int], prompt: list[int]) -> list[int]:
    return by_onnxruntime(model_of("llama_tiny"), [*before, *prompt], 1).tokens


@pytest.mark.parametrize(
    ("prompt", "tokens", "message"),
    [
        ([], 4, "the prompt is empty"),
        ([96], 4, "the token 96 at place 0"),
        ([1], BOUND, f"5 tokens before, 1 tokens of the prompt and {BOUND} new ones need a cache of {BOUND + 5}"),
        ([1], None, "the number of tokens cannot be None"),
        ([[1], [2]], 2, "2 prompts are given"),
    ],
)
def test_turns_that_cannot_be_change_nothing(llama: Generator, prompt: Any, tokens: Any, message: str) -> None:
    with llama.session() as session:
        found = session.generate(TURNS[0], 2)
        with pytest.raises(GenerateError, match=message):
            session.generate(prompt, tokens)
        assert session.tokens == [*TURNS[0], *found]
        (expected,) = llama_tokens(session.tokens, [6])
        assert session.generate([6], 1) == [expected]


def test_a_turn_that_fails_on_the_device_changes_nothing(llama: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    with llama.session() as session:
        found = session.generate(TURNS[0], 2)

        def fail(*given: Any) -> None:
            raise RunError("no memory")

        with monkeypatch.context() as broken:
            broken.setattr(Steps, "_chosen", fail)
            with pytest.raises(RunError, match="no memory"):
                session.generate([1, 2], 2)
        assert session.tokens == [*TURNS[0], *found]
        (expected,) = llama_tokens(session.tokens, [6])
        assert session.generate([6], 1) == [expected]


@pytest.mark.parametrize("fault", [RunError("lost"), KeyboardInterrupt()])
def test_a_token_that_fails_on_the_device_is_computed_again(
    llama: Generator, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    with llama.session() as session:
        stream = session.stream(TURNS[0], 8)
        first = [next(stream), next(stream)]
        length = llama.cache.length

        def fail(*given: Any) -> None:
            raise fault

        with monkeypatch.context() as broken:
            broken.setattr(Steps, "_chosen", fail)  # behind the row that the step puts into the cache
            with pytest.raises(type(fault)):
                next(stream)
        assert llama.cache.length == length
        assert session.tokens == [*TURNS[0], *first]
        found = session.generate([4], 4)
        assert by_onnxruntime(model_of("llama_tiny"), [*TURNS[0], *first, 4], 4).agrees(found)


def test_sessions_are_of_one_sequence(pythia: Generator) -> None:
    with pytest.raises(GenerateError, match="this generator has several sequences"), pythia.session():
        pass


def test_options_of_a_session_are_checked(llama: Generator) -> None:
    with pytest.raises(GenerateError, match="top_p cannot be 2"), llama.session(sm.Sampling(temperature=1, top_p=2)):
        pass
    with pytest.raises(GenerateError, match="the stop token 96 is no token"), llama.session(stop=[96]):
        pass
    heard = Generator(whisper(SHAPES["whisper_least"], heard=True), bound=BOUND, dims={"encoder_sequence_length": 3})
    with pytest.raises(GenerateError, match="nothing is given for it"), heard.session():
        pass
