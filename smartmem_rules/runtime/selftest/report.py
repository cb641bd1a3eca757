"""What a self-test found, and how it is kept: by the kernels and by device and driver."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from smartmem_rules.plan.artefact import Enqueue, Plan, Source
from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.devices import Device
from smartmem_rules.whole_files import write_whole

_VERSION = 1
_FOLDER = "self_tests"
_MOST_LINES = 10
UNOPTIMIZED = "-cl-opt-disable"
"""The option by which a driver's compiler leaves out what it may do wrong (OpenCL 3.0 API, 5.8.6.4)."""


class WrongKernelError(RunError):
    """A device computes kernels of a plan wrongly, and the plan has no other that it computes right."""


class ReplacedKernelWarning(UserWarning):
    """A device computes kernels of a plan wrongly; others that it computes right run in their place."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A kernel that a device computes wrongly.

    Attributes:
        kernel: the name of its first launch.
        launches: the numbers of all launches that run it.
        differences: what is wrong, in words, one for each tensor that it writes.
        replacement: `spare N`, `-cl-opt-disable`, or empty where nothing that the plan has is right.
    """

    kernel: str
    launches: tuple[int, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    differences: tuple[str, ...]
    replacement: str = ""

    def __str__(self) -> str:
        local = "chosen by the driver" if self.local_size is None else f"{self.local_size}"
        instead = f"; {self.replacement} runs instead" if self.replacement else "; nothing the plan has is right"
        return (
            f"the kernel {self.kernel} (launches {', '.join(map(str, self.launches))}, global size "
            f"{self.global_size}, local size {local}): {'; '.join(self.differences)}{instead}"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a self-test found on a device.

    Attributes:
        device: its name, platform, driver and version.
        asked: how many different kernels were asked.
        unasked: launches whose kernels have no known answers.
        seconds: that it took.
        kept: whether it is from an earlier test of the same kernels on the same device and driver.
    """

    device: str
    asked: int
    unasked: int
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    kept: bool = field(default=False, compare=False)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The kernels that nothing replaces."""
        return tuple(one for one in self.findings if not one.replacement)

    def __str__(self) -> str:
        lines = [f"{self.device}: {len(self.findings)} of {self.asked} kernels wrong"]
        lines += [str(one) for one in self.findings[:_MOST_LINES]]
        if len(self.findings) > _MOST_LINES:
            lines.append(f"... and {len(self.findings) - _MOST_LINES} kernels more")
        return "\n".join(lines)

    def data(self) -> dict[str, object]:
        """JSON data."""
        return asdict(self)


def device_text(device: Device) -> str:
    """The device, as a report names it."""
    return f"{device.name} ({device.platform}, driver {device.driver}, {device.version})"


def repaired(plan: Plan, report: Report) -> Plan:
    """The plan with what replaces its wrong kernels.

    Raises:
        WrongKernelError: nothing replaces one.
    """
    if report.wrong:
        raise WrongKernelError(f"the self-test of {plan.model} failed on {report}")
    enqueues = list(plan.enqueues)
    for finding in report.findings:
        for number in finding.launches:
            enqueues[number] = _other(enqueues[number], finding.replacement)
    return replace(plan, enqueues=enqueues)


def replacements(enqueue: Enqueue) -> dict[str, Source]:
    """What may run instead of a launch's kernel, by name, the best first."""
    source = enqueue.source
    plain = replace(source, options=(*source.options, UNOPTIMIZED))
    return {f"spare {number}": spare for number, spare in enumerate(enqueue.spares)} | {UNOPTIMIZED: plain}


def _other(enqueue: Enqueue, name: str) -> Enqueue:
    return replace(enqueue, source=replacements(enqueue)[name])


class KeptReports:
    """Reports in a folder.

    Args:
        folder: None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @staticmethod
    def of_user() -> KeptReports:
        """In the user's cache."""
        base = cache_folder()
        return KeptReports(None if base is None else base / _FOLDER)

    def read(self, plan: Plan, device: Device) -> Report | None:
        """The report of a plan's kernels on a device; None where there is none or it is damaged."""
        if self.folder is None:
            return None
        try:
            return _report(json.loads((self.folder / key(plan, device)).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, plan: Plan, device: Device, report: Report) -> None:
        """Keep a report; where that is impossible nothing happens."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / key(plan, device), json.dumps(report.data()).encode())


def key(plan: Plan, device: Device) -> str:
    """What a report depends on: the kernels with their sizes and probes, the device and its driver."""
    digest = hashlib.sha256(f"{_VERSION}\0{device_text(device)}\0".encode())
    for enqueue in plan.enqueues:
        for source in (enqueue.source, *enqueue.spares):
            sizes = source.global_size, source.local_size, source.options
            digest.update(f"{source.entry}\0{source.text}\0{sizes}\0".encode())
    for probe in plan.probes:
        for answer in probe.answers:
            digest.update(f"{probe.launches} {answer.argument} {answer.bound!r}\0".encode())
            digest.update(answer.rows.different.tobytes())
            digest.update(answer.rows.numbers.tobytes())
    return digest.hexdigest()


def _report(data: dict[str, Any]) -> Report:
    findings = tuple(_finding(one) for one in data.pop("findings"))
    return Report(**{**data, "findings": findings, "kept": True})


def _finding(data: dict[str, Any]) -> Finding:
    sizes: Sequence[int] | None = data["local_size"]
    return Finding(
        **{
            **data,
            "launches": tuple(data["launches"]),
            "global_size": tuple(data["global_size"]),
            "local_size": None if sizes is None else tuple(sizes),
            "differences": tuple(data["differences"]),
        }
    )
