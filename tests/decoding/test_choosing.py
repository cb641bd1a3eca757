"""Tokens drawn on the host."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_rules.decoding.choosing import ALL, BEST, GREATEST, Sampling, drawn
from smartmem_rules.decoding.errors import GenerateError

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def share(sampling: Sampling, count: int = 20000) -> np.ndarray:
    """How often each logit is drawn."""
    (generator,) = sampling.generators(1)
    found = [drawn(LOGITS, sampling, generator) for _ in range(count)]
    return np.bincount(found, minlength=len(LOGITS)) / count


def test_logits_are_drawn_by_their_probabilities() -> None:
    assert share(Sampling(temperature=1.0)) == pytest.approx([0.1, 0.4, 0.2, 0.3], abs=0.02)


def test_a_low_temperature_prefers_the_greatest() -> None:
    weights = np.array([0.1, 0.4, 0.2, 0.3]) ** 2
    assert share(Sampling(temperature=0.5)) == pytest.approx(weights / weights.sum(), abs=0.02)


@pytest.mark.parametrize(
    ("top_p", "expected"), [(0.3, [0, 1, 0, 0]), (0.5, [0, 4 / 7, 0, 3 / 7]), (0.75, [0, 4 / 9, 2 / 9, 3 / 9])]
)
def test_only_the_fewest_that_reach_top_p_are_drawn(top_p: float, expected: list[float]) -> None:
    assert share(Sampling(temperature=1.0, top_p=top_p)) == pytest.approx(expected, abs=0.02)


def test_sequences_draw_from_numbers_of_their_own() -> None:
    first, second = Sampling(seed=5).generators(2)
    assert first.random() != second.random()


def test_the_device_gives_what_the_host_needs_and_no_more() -> None:
    assert Sampling().selection(100).kind == GREATEST
    assert Sampling(temperature=1.0, top_k=1).selection(100).kind == GREATEST
    assert Sampling(temperature=1.0).selection(100).kind == ALL
    best = Sampling(temperature=1.0, top_k=7).selection(100)
    assert (best.kind, best.count) == (BEST, 7)


@pytest.mark.parametrize("temperature", [5e-324, 1e-320, 1e-300, 1e308])
def test_no_temperature_overflows(temperature: float) -> None:
    logits = np.array([-3e38, 1.0, 3e38, -np.inf], np.float32)
    sampling = Sampling(temperature=temperature)
    (generator,) = sampling.generators(1)
    found = {drawn(logits, sampling, generator) for _ in range(50)}
    assert found == ({2} if temperature < 1 else {0, 1, 2})


@pytest.mark.parametrize("broken", [[0.0, np.nan], [np.nan, np.nan], [np.inf, 0.0], [-np.inf, -np.inf]])
@pytest.mark.parametrize("top_k", [0, 1, 2])
def test_logits_that_are_no_numbers_are_refused(broken: list[float], top_k: int) -> None:
    sampling = Sampling(temperature=1.0, top_k=top_k)
    (generator,) = sampling.generators(1)
    with pytest.raises(GenerateError, match="logits from which nothing can be drawn"):
        drawn(np.array(broken, np.float32), sampling, generator)
