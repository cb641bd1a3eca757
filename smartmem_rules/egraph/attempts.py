"""Saturation again, where rules relied on large constants that turn out not to be what the rules took them for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from smartmem_rules.egraph.compiler import Rules
from smartmem_rules.egraph.constants import Constants
from smartmem_rules.guards.magnitudes import asks_for_moderate

Form = TypeVar("Form")
ATTEMPTS = 4
"""Each attempt refuses what the ones before it found; then no rule relies on a constant any more."""


def with_reliable_constants(base: Rules, choose: Callable[[Constants, Collection[str]], Form]) -> Form:
    """The form that is chosen of a model, no constant of which a reassociation made infinite, zero or NaN.

    Small constants are looked at while the rules run. Large ones are looked at when they are computed anyway, because a
    chosen form holds them.

    Args:
        base: the rules.
        choose: saturates the model with these constants and without these rules; computes the constants of the form
            that it chooses.
    """
    constants = Constants()
    for _ in range(ATTEMPTS):
        chosen = choose(constants, ())
        if not constants.relies_on_others():
            return chosen
    return choose(constants, [rule.name for rule in base.rewrites if asks_for_moderate(rule.relaxes)])
