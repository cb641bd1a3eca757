"""Prompts as one array, where they are padded."""

from __future__ import annotations

import numpy as np

from smartmem_rules.decoding.prompts import Prompts, count_of, several_of

SEVERAL = [[5, 6, 7], [8]]


def test_models_that_join_the_cache_get_prompts_next_to_what_follows() -> None:
    found = Prompts.of(SEVERAL, at_end=False)
    assert found.tokens.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert found.counts.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert found.positions.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert found.last.tolist() == [[2], [2]]
    assert found.is_padded


def test_models_that_count_tokens_get_prompts_at_the_beginning() -> None:
    found = Prompts.of(SEVERAL, at_end=True)
    assert found.tokens.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert found.counts.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert found.last.tolist() == [[2], [0]]
    assert found.lengths.tolist() == [3, 1]


def test_prompts_of_one_length_are_not_padded() -> None:
    assert not Prompts.of([[1, 2], [3, 4]], at_end=False).is_padded


def test_one_prompt_need_not_stand_in_a_list() -> None:
    assert several_of([1, 2]) == [[1, 2]]
    assert several_of(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert several_of([np.array([1, 2]), [3]]) == [[1, 2], [3]]
    assert (count_of([]), count_of([1]), count_of([[1], [2]])) == (1, 1, 2)
