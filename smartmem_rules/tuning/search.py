"""The search over one kernel's sizes: an evolution that begins with what the cost model thinks best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from smartmem_rules.tuning.database import Choice, TuningError

_POPULATION = 10
_FROM_MODEL = 8
"""Of the first population so many are the cost model's; the others are drawn."""
_WORST = 10.0
_ATTEMPTS = 40


class Evolution:
    """Asks for choices and is told what they took.

    Args:
        ranked: all choices, the cheapest by the cost model first.
        known: choices that were measured before, and their times relative to the default's.

    Raises:
        TuningError: optuna is not installed.
    """

    def __init__(self, ranked: Sequence[Mapping[str, int]], known: Sequence[tuple[Choice, float]], seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise TuningError("tuning needs the package optuna: pip install 'smartmem-rules[tune]'") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._space = [dict(choice) for choice in ranked]
        self._times: dict[tuple[tuple[str, int], ...], float] = {}
        sampler = optuna.samplers.NSGAIISampler(population_size=_POPULATION, seed=seed)
        self._study = optuna.create_study(sampler=sampler)
        names = list(self._space[0])
        self._distributions: dict[str, Any] = {
            name: optuna.distributions.CategoricalDistribution(sorted({choice[name] for choice in self._space}))
            for name in names
        }
        self._trial: Any = None
        for choice in self._space[:_FROM_MODEL]:
            self._study.enqueue_trial(choice)
        for choice, ratio in known:
            if choice in self._space:
                self._times[_key(choice)] = ratio

    def ask(self) -> Choice | None:
        """A choice that was not measured yet; None where there is none left."""
        if len(self._times) >= len(self._space):
            return None
        for _ in range(_ATTEMPTS):
            trial = self._study.ask(self._distributions)
            choice = self._nearest(trial.params)
            known = self._times.get(_key(choice))
            if known is None:
                self._trial = trial
                return choice
            self._study.tell(trial, known)
        # the population has become one: go on where the cost model sees the best of the rest
        self._trial = None
        return next(choice for choice in self._space if _key(choice) not in self._times)

    def tell(self, choice: Choice, ratio: float) -> None:
        """The time of the choice that was asked for last, relative to the default's."""
        self._times[_key(choice)] = min(ratio, _WORST)
        if self._trial is not None:
            self._study.tell(self._trial, self._times[_key(choice)])

    def _nearest(self, wanted: Mapping[str, int]) -> Choice:
        """The possible choice that is nearest: crossings of two choices need not be possible themselves."""

        def distance(choice: Choice) -> float:
            return sum(abs(math.log2(choice[name] / value)) for name, value in wanted.items())

        return min(self._space, key=distance)


def _key(choice: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(choice.items()))
