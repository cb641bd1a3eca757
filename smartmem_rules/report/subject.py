"""What a report is about: a plan with all that is known of how it was made and how fast it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from smartmem_rules.explanation.fates import FileNode
from smartmem_rules.explanation.making import Making
from smartmem_rules.explanation.profile import kernel_profile
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.verdicts import VERDICTS, WITH_PROOFS, recorded, shipped
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.executor import Executor, Latency
from smartmem_rules.runtime.reference import Check
from smartmem_rules.runtime.roof import Roof, roof_of

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import KernelProfile

RUNS = 5
"""Runs of which a launch's time is the median."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Times of a plan on a device.

    Attributes:
        kernels: what `kernel_profile` says of each launch that ran.
        whole: what `benchmark` says of whole inferences.
    """

    device: str
    runs: int
    roof: Roof
    kernels: tuple[KernelProfile, ...]
    whole: Latency


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A plan with what is known of it.

    Attributes:
        device: that it would run on here; None where there is none.
        file: the nodes of the ONNX file by name; none where the plan comes from something else.
        stages: the texts of the stages that led to it, as far as they were kept.
        verdicts: on the rules, by name.
    """

    plan: Plan
    device: Device | None = None
    check: Check | None = None
    making: Making = field(default_factory=Making)
    file: Mapping[str, FileNode] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    measured: Measured | None = None


def measure(executor: Executor, feeds: Mapping[str, object], runs: int = RUNS) -> Measured:
    """The times of a plan's launches, and of whole inferences."""
    roof = roof_of(executor.device)
    whole = executor.benchmark(runs, 1, feeds)
    kernels = tuple(kernel_profile(executor, roof, feeds, runs))
    return Measured(device=executor.device.name, runs=runs, roof=roof, kernels=kernels, whole=whole)


def verdicts_on(base: RuleBase) -> dict[str, str]:
    """What verifications said of rules: of the built-in ones when they were published, of others on this computer."""
    return {**recorded(base, WITH_PROOFS), **recorded(base, VERDICTS), **shipped(base)}
