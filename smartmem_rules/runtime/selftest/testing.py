"""The self-test of a plan on a device, and an executor that runs only what passed it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from itertools import groupby

from smartmem_rules.environment import SELF_TEST
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.probe import Probe
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.selftest.asking import Asker
from smartmem_rules.runtime.selftest.report import (
    Finding,
    KeptReports,
    ReplacedKernelWarning,
    Report,
    device_text,
    repaired,
    replacements,
)

_STACK = 4


@dataclass(frozen=True, kw_only=True)
class Tested:
    """An executor of kernels that answered right, and the report; None where the plan has no probes."""

    executor: Executor
    report: Report | None


def executor_of(
    plan: Plan, device: Device, progress: Callable[[int, int], None] | None = None, debug: bool = False
) -> Tested:
    """An executor of a plan whose kernels have been asked their probes, now or before on the same device and driver.

    The other arguments are those of `Executor`.

    Raises:
        WrongKernelError: the device computes a kernel wrongly that nothing replaces; it says which, and how.
        BuildError, RunError: as `Executor` does.
    """
    setting = SELF_TEST.value() or ""
    if not plan.probes or debug or setting == "off":
        return Tested(executor=Executor(plan, device, progress, debug), report=None)
    kept = KeptReports.of_user()
    report = None if setting == "again" else kept.read(plan, device)
    if report is not None:
        return _ready(plan, device, progress, report, None)
    executor = Executor(plan, device, progress)
    report = self_test(executor)
    kept.write(plan, device, report)
    return _ready(plan, device, progress, report, executor)


def _ready(
    plan: Plan,
    device: Device,
    progress: Callable[[int, int], None] | None,
    report: Report,
    executor: Executor | None,
) -> Tested:
    if report.findings:
        plan = repaired(plan, report)
        warnings.warn(str(report), ReplacedKernelWarning, stacklevel=_STACK)
        executor = None
    return Tested(executor=executor or Executor(plan, device, progress), report=report)


def self_test(executor: Executor, progress: Callable[[int, int], None] | None = None) -> Report:
    """Ask the kernels of an executor's plan; those that answer wrongly have their replacements asked.

    Args:
        progress: called with the numbers of kernels asked and to ask.
    """
    begun = time.perf_counter()
    plan = executor.plan
    asker = asker_of(executor)
    findings = []
    kernels = [tuple(probes) for _, probes in groupby(plan.probes, lambda probe: probe.launches)]
    for number, probes in enumerate(kernels, 1):
        finding = _asked(asker, probes)
        if finding is not None:
            findings.append(finding)
        if progress is not None:
            progress(number, len(kernels))
    return Report(
        device=device_text(executor.device),
        asked=len(kernels),
        unasked=len(plan.unasked),
        findings=tuple(findings),
        seconds=round(time.perf_counter() - begun, 3),
    )


def asker_of(executor: Executor) -> Asker:
    """Asks the built kernels of an executor, beside all of its runs."""
    return Asker(executor.plan, executor.device, executor.built.context, executor.built.programs)


def _asked(asker: Asker, probes: Sequence[Probe]) -> Finding | None:
    """What is wrong with the answers of one kernel to the first question that it answers wrongly."""
    answers = (tuple(map(str, asker.differences(probe))) for probe in probes)
    differences = next(filter(None, answers), None)
    if differences is None:
        return None
    launches = probes[0].launches
    enqueue = asker.plan.enqueues[launches[0]]
    others = replacements(enqueue).items()
    right = (name for name, source in others if next(asker.of_other(probes, source), None) is None)
    return Finding(
        kernel=enqueue.launch.name,
        launches=launches,
        global_size=enqueue.source.global_size,
        local_size=enqueue.source.local_size,
        differences=differences,
        replacement=next(right, ""),
    )
