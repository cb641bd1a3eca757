"""Generators that the tests share."""

from __future__ import annotations

import pytest

from smartmem_rules.decoding.generator import Generator
from tests.decoding.models import model_of

BOUND, BLOCK = 48, 16


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
