"""Prompts of several sequences as one array."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from smartmem_rules.decoding.choosing import Array
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """Token numbers of all sequences, the shorter ones padded.

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
        """Prompts padded at their end or at their beginning.

        Models that join the cache take distances between tokens from their places (windows, biases), so that nothing
        may lie between a prompt and what follows; those that count the tokens of a sequence want them at its beginning.
        """
        lengths = np.array([len(prompt) for prompt in prompts], np.int64)
        longest = int(lengths.max())
        padding = [longest - len(prompt) for prompt in prompts]
        rows = [
            [*prompt, *[0] * n] if at_end else [*[0] * n, *prompt] for prompt, n in zip(prompts, padding, strict=True)
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
    def is_padded(self) -> bool:
        """Whether there are places without a token."""
        return not self.counts.all()


def several_of(given: Any) -> list[list[Any]]:
    """The prompts, where one alone need not stand in a list.

    Raises:
        GenerateError: what is given is no list of token numbers, and no list of such lists.
    """
    listed = _listed(given)
    if listed is None:
        raise _no_prompts(given)
    if not listed or _listed(listed[0]) is None:
        return [listed]
    several = [_listed(one) for one in listed]
    if None in several:
        raise _no_prompts(given)
    return [one for one in several if one is not None]


def _listed(given: Any) -> list[Any] | None:
    if isinstance(given, np.ndarray):
        return list(given.tolist()) if given.ndim else None
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else None


def _no_prompts(given: Any) -> GenerateError:
    return GenerateError(f"{given!r} is no prompt; give a list of token numbers, or one for each sequence")


def stop_tokens(given: Any, vocabulary: int | None) -> frozenset[int]:
    """The tokens that end a sequence.

    Args:
        vocabulary: how many tokens the model has; None where that is not known.

    Raises:
        GenerateError: one of them is no token of the model.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise GenerateError(f"{given!r} is no list of stop tokens; give their numbers in a list")
    for token in given:
        whole = isinstance(token, int | np.integer) and not isinstance(token, bool)
        if not whole or token < 0 or (vocabulary is not None and token >= vocabulary):
            known = "" if vocabulary is None else f"; the model has {vocabulary}, from 0 on"
            raise GenerateError(f"the stop token {token!r} is no token{known}")
    return frozenset(map(int, given))


def count_of(prompts: Any) -> int:
    """How many sequences prompts are."""
    return len(several_of(prompts))
