"""Prompts of several sequences as one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartmem_rules.decoding.choosing import Array


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Token numbers of all sequences, the shorter ones filled up.

    Attributes:
        tokens: [sequences, longest], int64.
        counts: which of them count, [sequences, longest].
        lengths: how many tokens each has.
        last: the place of the last token of each, [sequences, 1].
    """

    tokens: Array
    counts: Array
    lengths: Array
    last: Array

    @classmethod
    def of(cls, prompts: Sequence[Sequence[int]], at_end: bool) -> Prompts:
        """Prompts filled up at their end or at their beginning.

        Models that join the cache take distances between tokens from their places (windows, biases), so that nothing
        may lie between a prompt and what follows; those that count the tokens of a sequence want them at its beginning.
        """
        lengths = np.array([len(prompt) for prompt in prompts], np.int64)
        longest = int(lengths.max())
        filled = [longest - len(prompt) for prompt in prompts]
        rows = [
            [*prompt, *[0] * n] if at_end else [*[0] * n, *prompt] for prompt, n in zip(prompts, filled, strict=True)
        ]
        places = np.arange(longest)
        counts = places < lengths[:, None] if at_end else places >= (longest - lengths)[:, None]
        last = lengths[:, None] - 1 if at_end else np.full((len(rows), 1), longest - 1)
        return cls(tokens=np.array(rows, np.int64), counts=counts.astype(np.int64), lengths=lengths, last=last)

    @property
    def positions(self) -> Array:
        """Of each token in its sequence; 0 where none is."""
        return np.asarray(np.maximum(np.cumsum(self.counts, axis=1) - 1, 0))

    @property
    def is_filled(self) -> bool:
        """Whether there are places without a token."""
        return not self.counts.all()


def several_of(given: Any) -> list[list[Any]]:
    """The prompts, where one alone need not stand in a list."""
    listed = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if listed and not isinstance(listed[0], int | np.integer):
        return [one.tolist() if isinstance(one, np.ndarray) else list(one) for one in listed]
    return [listed]


def count_of(prompts: Any) -> int:
    """How many sequences prompts are."""
    return len(several_of(prompts))
