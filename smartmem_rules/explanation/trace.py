"""One run as a file of Chrome's Trace Event Format, which https://ui.perfetto.dev and chrome://tracing show.

Times are microseconds since the first event. The launches lie on a track of the device, by OpenCL's profiling events;
the host's steps, and the stages of planning, lie on tracks of the host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.explanation.making import Making
from smartmem_rules.explanation.report import launch_kind
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.timed_run import HostStep, LaunchTimes, RunTimes
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.feeds import Array
from smartmem_rules.runtime.format.provenance import package_version
from smartmem_rules.stages import Span
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.whole_files import whole_file

_HOST, _DEVICE = 1, 2
_STAGES, _RUN = 1, 2
_LAUNCHES = 1


class TraceFileError(SmartmemError):
    """The file of a trace cannot be written."""


def traced_run(executor: Executor, making: Making, feeds: Mapping[str, object], path: str | Path) -> dict[str, Array]:
    """One inference, whose trace is written; the outputs.

    Raises:
        TraceFileError: the file cannot be written; what was there before stays.
        GraphError, RunError, BoundsError: as `Executor.run`; nothing is written then.
    """
    try:
        with whole_file(path) as stream:  # before the run, so that a place that cannot be written is refused at once
            outputs, times = executor.traced_run(feeds)
            traced = Traced(plan=executor.plan, device=executor.device, times=times, making=making)
            stream.write(json.dumps(traced.data(), indent=1, allow_nan=False).encode())
    except OSError as error:
        raise TraceFileError(f"{path}: the trace cannot be written ({error.strerror or error})") from error
    return outputs


@dataclass(frozen=True, kw_only=True)
class Traced:
    """A run of a plan on a device.

    Attributes:
        making: how the plan was made, as far as that is known.
    """

    plan: Plan
    device: Device
    times: RunTimes
    making: Making

    def data(self) -> dict[str, object]:
        """The trace: {traceEvents, displayTimeUnit, otherData}."""
        offset = self.times.offset()
        return {
            "traceEvents": [*self._names(), *self._stages(), *self._steps(), *self._launches()],
            "displayTimeUnit": "ns",
            "otherData": {
                "program": f"smartmem_rules {package_version()}",
                "model": self.plan.model,
                "level": self.plan.level,
                "dtype": self.plan.dtype,
                "profile": self.plan.device,
                "device": self.device.name,
                "platform": self.device.platform,
                "driver": self.device.driver,
                "clock_uncertainty_us": offset.uncertainty / 1e3,
            },
        }

    @cached_property
    def _start(self) -> int:
        """The first event's time on the host's clock."""
        offset = self.times.offset().nanoseconds
        host = [*self.making.stages, *(step.span for step in self.times.steps)]
        return min([one.start for one in host] + [one.queued - offset for one in self.times.launches])

    def _microseconds(self, host_time: int) -> float:
        return (host_time - self._start) / 1e3

    def _names(self) -> Iterator[dict[str, Any]]:
        """Metadata events: what the processes and threads of the trace stand for."""
        driver = f"{self.device.platform}, driver {self.device.driver}"
        for process, name, labels in ((_HOST, "host", self.plan.model), (_DEVICE, self.device.name, driver)):
            yield _metadata("process_name", process, 0, name=name)
            yield _metadata("process_labels", process, 0, labels=labels)
            yield _metadata("process_sort_index", process, 0, sort_index=process)
        stages = [(_HOST, _STAGES, "planning")] if self.making.stages else []
        for process, thread, name in (*stages, (_HOST, _RUN, "run"), (_DEVICE, _LAUNCHES, "launches")):
            yield _metadata("thread_name", process, thread, name=name)

    def _stages(self) -> Iterator[dict[str, Any]]:
        for span in self.making.stages:
            yield self._complete(span, "planning", _STAGES, {})

    def _steps(self) -> Iterator[dict[str, Any]]:
        for step in self.times.steps:
            given = {"tensors": list(step.tensors), "bytes": step.bytes} if step.tensors else {}
            yield self._complete(_named(step), "host", _RUN, given)

    def _complete(self, span: Span, category: str, thread: int, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "ph": "X",
            "name": span.name,
            "cat": category,
            "pid": _HOST,
            "tid": thread,
            "ts": self._microseconds(span.start),
            "dur": (span.end - span.start) / 1e3,
            "args": given,
        }

    def _launches(self) -> Iterator[dict[str, Any]]:
        modelled = {} if self.making.modelled is None else self.making.modelled.microseconds()
        numbers = {launch.name: number for number, launch in enumerate(self.plan.launches)}
        offset = self.times.offset().nanoseconds
        for times in self.times.launches:
            yield {
                "ph": "X",
                "name": times.name,
                "cat": "launch",
                "pid": _DEVICE,
                "tid": _LAUNCHES,
                "ts": self._microseconds(times.started - offset),
                "dur": (times.ended - times.started) / 1e3,
                "args": {
                    **self._launch(numbers[times.name], times),
                    "modelled_us": modelled.get(times.name),
                    "queued_us": self._microseconds(times.queued - offset),
                    "submit_us": self._microseconds(times.submitted - offset),
                    "start_us": self._microseconds(times.started - offset),
                    "end_us": self._microseconds(times.ended - offset),
                },
            }

    def _launch(self, number: int, times: LaunchTimes) -> dict[str, Any]:
        launch = self.plan.launches[number]
        return {
            "launch": number,
            "form": launch_kind(launch),
            "kernels": [kernel.name for kernel in launch.kernels],
            "nodes": list(launch.origin),
            "reads": list(launch.reads),
            "writes": list(launch.writes),
            "bytes": launch.bytes_moved,
            "operations": largest(launch.operations),
            "global_size": list(times.global_size),
            "local_size": None if times.local_size is None else list(times.local_size),
        }


def _named(step: HostStep) -> Span:
    """The step under the name of its tensor, where it has one only and that is its subject."""
    if step.span.name != "input":
        return step.span
    return Span(name=f"input {step.tensors[0]}", start=step.span.start, end=step.span.end)


def _metadata(kind: str, process: int, thread: int, **given: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": given}
