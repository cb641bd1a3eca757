"""Texts for GPUs are compiled here without optimizing, unless all cases run.

No user's GPU kernel is compiled by PoCL for a processor: tests run them there to see that they compute what they
should. PoCL's optimizer takes longer over work-groups with local memory than all else that the tests do. Kernels for
processors are compiled as users' are, and with `--all` those for GPUs are optimized, too.
"""

from __future__ import annotations

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs import compiling
from smartmem_rules.runtime.programs.excerpts import PRELUDE_END

UNOPTIMIZED = "-cl-opt-disable"
MARKS = ("__local", "image2d_t")
"""What no kernel for processors has behind the prelude."""


def is_for_gpus(source: Source) -> bool:
    """Whether a kernel uses local memory or images, which are those of GPUs."""
    _, _, own = source.text.rpartition(PRELUDE_END)
    return any(mark in own for mark in MARKS)


def compile_without_optimizing() -> None:
    """From now on, in this process."""
    options_of = compiling.options_of

    def options(source: Source, device: Device) -> tuple[str, ...]:
        own = options_of(source, device)
        return own if UNOPTIMIZED in own or not is_for_gpus(source) else (*own, UNOPTIMIZED)

    compiling.options_of = options
