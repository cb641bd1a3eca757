"""What the trials of a rule may cost, and what they gave."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field

from smartmem_rules.records import dataclass
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.semantics.domains import Array

TRIALS = 200
FLOOR = 20
"""Fewer satisfied trials than this make a rule vacuous."""


@dataclass
class Budget:
    """How long and how often a rule is tried. Time is the processor's, so that a busy machine changes no verdict."""

    trials: int = TRIALS
    seconds: float = 10.0
    hopeless: int = 120
    """Instances without a satisfied one after which a rule is given up."""
    started: float = field(default_factory=time.process_time)

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return time.process_time() - self.started > self.seconds


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One element that differs."""

    place: tuple[int, ...]
    left: object
    right: object
    domain: str
    tensors: Mapping[str, Array]
    left_values: Array
    right_values: Array


@dataclass
class Outcome:
    """What the trials of a rule gave."""

    trials: int = 0
    cases: int = 0
    generated: int = 0
    satisfied: int = 0
    refused: int = 0
    special: int = 0
    empty: int = 0
    domains: set[str] = field(default_factory=set)
    rounding: float | None = None
    failure: tuple[Case, Difference] | None = None
    timed_out: bool = False

    @property
    def share(self) -> float:
        """Satisfied of generated instances."""
        return self.satisfied / self.generated if self.generated else 0.0
