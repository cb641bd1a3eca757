"""Plans and facts from the store: the second generator makes none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import onnx
import pytest

from bench.zoo.two_decoders import two_decoders
from smartmem_rules.decoding import plans
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import Generator
from smartmem_rules.decoding.model import reading
from smartmem_rules.decoding.model.growth import COUNTED
from tests.decoding.models import by_onnxruntime, model_of

PROMPT = [5, 7, 11]
SETTLED = 0.05
"""Seconds after which a file that is written anew has another time."""


def refuse(*given: Any, **options: Any) -> Any:
    raise AssertionError("a plan is made")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's file, and a store of its own."""
    monkeypatch.setenv("SMARTMEM_PLANS", str(tmp_path / "plans"))
    path = tmp_path / "llama.onnx"
    onnx.save(model_of("llama_tiny"), str(path))
    time.sleep(SETTLED)
    return path


def test_plans_are_kept_with_what_is_known_of_the_model(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Generator(model, bound=32, block=8)
    found = first.generate(PROMPT, 6)
    monkeypatch.setattr(plans, "planned", refuse)
    monkeypatch.setattr(reading, "import_model", refuse)
    second = Generator(model, bound=32, block=8)
    assert second.plans.facts == first.plans.facts
    assert second.generate(PROMPT, 6) == found


def test_another_model_in_the_same_file_gets_plans_of_its_own(model: Path) -> None:
    Generator(model, bound=32, block=8)
    onnx.save(model_of("grouped_tiny"), str(model))
    assert Generator(model, bound=32, block=8).plans.facts.growth.kind == COUNTED


def test_damaged_facts_are_found_anew(model: Path) -> None:
    first = Generator(model, bound=32, block=8)
    (path,) = (model.parent / "plans").glob("*.facts.json")
    path.write_text('{"interface": 3}')
    assert Generator(model, bound=32, block=8).plans.facts == first.plans.facts


def test_plans_of_two_files_are_kept_until_one_of_them_is_another(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two, behind = two_decoders("llama_tiny"), model.parent / "behind.onnx"
    onnx.save(two.prompts, str(model))
    onnx.save(two.tokens, str(behind))
    time.sleep(SETTLED)
    first = Generator(model, bound=32, block=8, with_past=behind)
    found = first.generate(PROMPT, 6)
    assert by_onnxruntime(model_of("llama_tiny"), PROMPT, 6).agrees(found[0])
    with monkeypatch.context() as patched:
        patched.setattr(plans, "planned", refuse)
        patched.setattr(reading, "import_model", refuse)
        second = Generator(model, bound=32, block=8, with_past=behind)
        assert second.plans.facts == first.plans.facts
        assert second.generate(PROMPT, 6) == found
    onnx.save(two_decoders("pythia_tiny").tokens, str(behind))
    with pytest.raises(GenerateError, match="do not belong together"):
        Generator(model, bound=32, block=8, with_past=behind)


def test_weights_in_data_files_are_compared_again_where_a_file_is_another_one(model: Path) -> None:
    two, behind = two_decoders("llama_tiny"), model.parent / "behind.onnx"

    def saved(made: onnx.ModelProto, path: Path) -> None:
        kept = onnx.ModelProto()
        kept.CopyFrom(made)
        onnx.save(kept, str(path), save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)

    saved(two.prompts, model)
    saved(two.tokens, behind)
    time.sleep(SETTLED)
    Generator(model, bound=32, block=8, with_past=behind)
    weights = model.parent / "behind.data"
    weights.write_bytes(bytes(byte ^ 1 for byte in weights.read_bytes()))
    with pytest.raises(GenerateError, match="no weight of the first is one of the second"):
        Generator(model, bound=32, block=8, with_past=behind)
