"""Generators that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smartmem_rules.decoding.generator import Generator
from tests.decoding.models import model_of

BOUND, BLOCK = 48, 16


@pytest.fixture(scope="package", autouse=True)
def kept_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans of one model with one set of options are made once for all of these tests, as for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMARTMEM_PLANS", str(tmp_path_factory.mktemp("plans")))
        yield


@pytest.fixture(scope="package")
def llama() -> Generator:
    """Llama's form, one sequence."""
    return Generator(model_of("llama_tiny"), bound=BOUND, block=BLOCK)


@pytest.fixture(scope="package")
def pythia() -> Generator:
    """Pythia's form, three sequences."""
    return Generator(model_of("pythia_tiny"), sequences=3, bound=BOUND, block=BLOCK)


@pytest.fixture(scope="package")
def grouped() -> Generator:
    """GroupQueryAttention, three sequences."""
    return Generator(model_of("grouped_tiny"), sequences=3, bound=BOUND, block=BLOCK)
