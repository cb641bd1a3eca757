"""A device with too little memory: what is advised then fits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import smartmem_rules as sm
from bench.zoo.decoders import SHAPES, decoder
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.room.needs import TooLargeError
from tests.room.devices import device_file

PROMPTS = [[5, 7, 11], [9]]
BOUND = 64


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """Most of it are weights: tables of many words."""
    return decoder(replace(SHAPES["llama_tiny"], vocabulary=2048, layers=1))


@pytest.fixture(scope="module")
def needed(model: onnx.ModelProto) -> int:
    """Bytes for two sequences whose cache is full."""
    return memory_of(model, 2, BOUND)


def memory_of(model: onnx.ModelProto, sequences: int, bound: int) -> int:
    generator = Generator(model, sequences=sequences, bound=bound, block=8)
    generator.generate(PROMPTS[:sequences], bound - 3)
    return generator.plans.demand(generator.cache, bound).needs(bound, sequences).total


def refused(model: onnx.ModelProto, folder: Path, memory: int) -> str:
    generator = Generator(model, sequences=2, bound=BOUND, block=8, rules=[device_file(folder, memory=memory)])
    with pytest.raises(TooLargeError) as error:
        generator.generate(PROMPTS, BOUND - 3)
    with pytest.raises(TooLargeError):  # the generator goes on
        generator.generate(PROMPTS, BOUND - 3)
    return str(error.value)


@pytest.mark.exhaustive
def test_a_shorter_bound_is_advised_which_fits(model: onnx.ModelProto, needed: int, tmp_path: Path) -> None:
    memory = needed * 97 // 100
    found = re.search(r"a bound of (\d+) tokens", said := refused(model, tmp_path, memory))
    assert found, said
    bound = int(found[1])
    assert BOUND // 3 < bound < BOUND
    generator = Generator(model, sequences=2, bound=bound, block=8, rules=[device_file(tmp_path, memory=memory)])
    assert len(generator.generate(PROMPTS, bound - 3)[0]) == bound - 3


@pytest.mark.exhaustive
def test_fewer_sequences_are_advised_which_fit(model: onnx.ModelProto, needed: int, tmp_path: Path) -> None:
    memory = needed - 64
    assert "1 at once of the 2 sequences: " in refused(model, tmp_path, memory)
    rules = [device_file(tmp_path, memory=memory)]
    assert len(Generator(model, bound=BOUND, block=8, rules=rules).generate(PROMPTS[0], BOUND - 3)[0]) == BOUND - 3


@pytest.mark.exhaustive
def test_weights_of_fewer_bits_are_advised_which_fit(model: onnx.ModelProto, needed: int, tmp_path: Path) -> None:
    memory = needed // 2
    assert re.search(r"what would fit: weights of 8 bits .*; weights of 4 bits", refused(model, tmp_path, memory))
    small, rules = sm.quantize(model, weights="int8"), [device_file(tmp_path, memory=memory)]
    assert len(sm.generate(small, PROMPTS, BOUND - 3, bound=BOUND, block=8, rules=rules)[0]) == BOUND - 3


@pytest.mark.exhaustive
def test_bits_and_a_bound_together_are_advised_where_neither_suffices(model: onnx.ModelProto, tmp_path: Path) -> None:
    small = sm.quantize(model, weights="int4")
    memory = memory_of(small, 2, BOUND // 2) * 106 // 100
    found = re.search(
        r"what would fit: weights of 4 bits \(.*?\) and a bound of (\d+)", said := refused(model, tmp_path, memory)
    )
    assert found, said
    bound, rules = int(found[1]), [device_file(tmp_path, memory=memory)]
    assert len(sm.generate(small, PROMPTS, bound - 3, bound=bound, block=8, rules=rules)[0]) == bound - 3


@pytest.mark.exhaustive
def test_a_call_that_needs_less_of_the_cache_goes_on(model: onnx.ModelProto, needed: int, tmp_path: Path) -> None:
    rules = [device_file(tmp_path, memory=needed - 64)]
    generator = Generator(model, sequences=2, bound=BOUND, block=8, rules=rules)
    with pytest.raises(TooLargeError):
        generator.generate(PROMPTS, BOUND - 3)
    assert len(generator.generate(PROMPTS, 4)[0]) == 4


def test_where_nothing_fits_the_least_is_said(model: onnx.ModelProto, tmp_path: Path) -> None:
    said = refused(model, tmp_path, 1000)
    assert re.search(r"nothing of this fits: the least is [\d.]+ KiB, with weights of 4 bits .* and a bound of 2", said)
