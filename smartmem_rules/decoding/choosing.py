"""How the next token is chosen: what of it the device computes, and what the host draws from a seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smartmem_rules.arguments import check_kinds, number, whole
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.records import dataclass

Array = np.ndarray[Any, np.dtype[Any]]
GREATEST, BEST, ALL = "greatest", "best", "all"
_NUMBER = number("a number", lambda value: True)
_KINDS = {"temperature": _NUMBER, "top_k": whole(), "top_p": _NUMBER, "seed": whole()}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a plan gives of the logits of each sequence's last token.

    Attributes:
        kind: `greatest` (the number of the greatest), `best` (the greatest ones in order, with their numbers) or
            `all` of them.
        count: of the best.
    """

    kind: str
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: by which logits are divided; 0 takes the greatest.
        top_k: only so many of the greatest are drawn from; 0 for all.
        top_p: only the fewest are drawn from whose probabilities sum up to this.
        seed: of what is drawn; each sequence of a batch draws from numbers of its own.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def check(self) -> None:
        """Raises GenerateError for what nothing can be drawn with, and TypeError for what is no number."""
        check_kinds(vars(self), _KINDS)
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise GenerateError(
                f"the temperature cannot be {self.temperature}; give 0 (the greatest) or a number above"
            )
        if self.top_k < 0:
            raise GenerateError(f"top_k cannot be {self.top_k}; give a number of tokens, or 0 for all")
        if not 0 < self.top_p <= 1:
            raise GenerateError(f"top_p cannot be {self.top_p}; give a probability above 0, at most 1")
        if self.seed < 0:
            raise GenerateError(f"the seed cannot be {self.seed}; give a number from 0 on")

    def selection(self, vocabulary: int | None) -> Selection:
        """What the device has to give.

        Args:
            vocabulary: how many logits there are, where that is known.
        """
        if self.temperature == 0 or self.top_k == 1:
            return Selection(kind=GREATEST)
        if self.top_k and (vocabulary is None or self.top_k < vocabulary):
            return Selection(kind=BEST, count=self.top_k)
        return Selection(kind=ALL)

    def generators(self, sequences: int) -> list[np.random.Generator]:
        """A source of numbers for each sequence."""
        return [np.random.default_rng([self.seed, sequence]) for sequence in range(sequences)]


def drawn(logits: Array, sampling: Sampling, generator: np.random.Generator) -> int:
    """The place of the logit that is drawn.

    Args:
        logits: those to draw from, in any order, [logits]; those of -inf are never drawn.

    Raises:
        GenerateError: one of them is NaN or inf, or all are -inf.
    """
    greatest = logits.max()
    if not np.isfinite(greatest):  # NaN wherever one of them is
        raise GenerateError(
            f"the model gives logits from which nothing can be drawn (the greatest is {greatest}); mend its weights, "
            "or compute it in float32"
        )
    order = np.argsort(-logits, kind="stable")[: sampling.top_k or None]
    with np.errstate(over="ignore"):  # temperatures near 0 leave the greatest alone
        below = (logits[order].astype(np.float64) - float(greatest)) / sampling.temperature
    weights = np.exp(below)
    sums = np.cumsum(weights / weights.sum())
    # the fewest that reach top_p: all before it, and the one that does
    kept = min(int(np.searchsorted(sums, sampling.top_p)) + 1, len(sums))
    point = generator.random() * sums[kept - 1]
    return int(order[min(int(np.searchsorted(sums, point, side="right")), kept - 1)])
