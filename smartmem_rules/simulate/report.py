"""A plan on a model of a device: memory accesses, misses, bytes and time, by kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, NotRequired, TypedDict

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.simulate.launch import TracedLaunch
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.simulate.sampling import Effort, Estimate, estimate, together
from smartmem_rules.simulate.source import SimulationError

Progress = Callable[[str, int, int], None]


class CacheTraffic(TypedDict):
    """What a memory of the simulated device saw."""

    requests: NotRequired[int]
    misses: NotRequired[int]
    bytes: NotRequired[int]


class SamplingError(TypedDict):
    """How far off the sampled figures may be, relative to them."""

    accesses: float
    misses: float


class SimulatedKernel(TypedDict):
    """A kernel in the simulated device; `bound` is what its time comes from."""

    name: str
    nodes: list[str]
    accesses: int
    misses: int
    texture_l1_misses: int
    l2_misses: int
    bytes: int
    estimated_ms: float
    bound: str
    sampled: bool


class SimulatedLevel(TypedDict):
    """A level's plan in the simulated device."""

    kernels: int
    accesses: int
    misses: int
    bytes: int
    estimated_ms: float
    memories: dict[str, CacheTraffic]
    relative_error: SamplingError
    sampled_kernels: int
    by_kernel: list[SimulatedKernel]


@dataclass(frozen=True, kw_only=True)
class KernelReport:
    """One kernel.

    Attributes:
        accesses: loads and stores of single work-items; a vector or a texel is one.
        requests: lines that waves ask of the caches.
        l1_misses, l2_misses: of the texture caches and of the shared cache.
        l2_requests: misses of the texture caches, and what goes past them.
        bytes: between the shared cache and memory.
        local_bytes: in and out of local memory.
        milliseconds: launch, and the slowest of arithmetic, texture units, local memory, shared cache and memory.
        bound: which of them is the slowest.
        error: half widths of the 95 % intervals of the accesses and of the misses.
    """

    name: str
    origin: tuple[str, ...]
    accesses: float
    requests: float
    l1_requests: float
    l1_misses: float
    l2_requests: float
    l2_misses: float
    texel_bytes: float
    local_bytes: float
    bytes: float
    milliseconds: float
    bound: str
    sampled: bool
    error: dict[str, float]


@dataclass
class PlanReport:
    """All kernels of a plan, in the order of execution."""

    level: str
    dtype: str
    kernels: list[KernelReport] = field(default_factory=list)

    def total(self, name: str) -> float:
        """The sum of a figure over the kernels."""
        return float(sum(getattr(k, name) for k in self.kernels))

    def error(self, name: str) -> float:
        """Half width of the 95 % interval of the sum, relative to it; kernels that are alike err together."""
        value = self.total("accesses") if name == "accesses" else self.total("l1_misses") + self.total("l2_misses")
        alike: dict[tuple[float, float], float] = {}
        for kernel in self.kernels:
            key = (kernel.accesses, kernel.requests)
            alike[key] = alike.get(key, 0.0) + kernel.error[name]
        return math.sqrt(sum(v * v for v in alike.values())) / value if value else 0.0

    def data(self) -> SimulatedLevel:
        """The content for JSON: sums, what each cache does, and a list of kernels."""
        l1_misses, l2_misses = self.total("l1_misses"), self.total("l2_misses")
        return {
            "kernels": len(self.kernels),
            "accesses": round(self.total("accesses")),
            "misses": round(l1_misses) + round(l2_misses),
            "bytes": round(self.total("bytes")),
            "estimated_ms": self.total("milliseconds"),
            "memories": {
                "texture_l1": {
                    "requests": round(self.total("l1_requests")),
                    "misses": round(l1_misses),
                    "bytes": round(self.total("texel_bytes")),
                },
                "local": {"bytes": round(self.total("local_bytes"))},
                "l2": {"requests": round(self.total("l2_requests")), "misses": round(l2_misses)},
                "global": {"bytes": round(self.total("bytes"))},
            },
            "relative_error": {"accesses": self.error("accesses"), "misses": self.error("misses")},
            "sampled_kernels": sum(k.sampled for k in self.kernels),
            "by_kernel": [_kernel_data(k) for k in self.kernels],
        }


def _kernel_data(kernel: KernelReport) -> SimulatedKernel:
    return {
        "name": kernel.name,
        "nodes": list(kernel.origin),
        "accesses": round(kernel.accesses),
        "misses": round(kernel.l1_misses + kernel.l2_misses),
        "texture_l1_misses": round(kernel.l1_misses),
        "l2_misses": round(kernel.l2_misses),
        "bytes": round(kernel.bytes),
        "estimated_ms": kernel.milliseconds,
        "bound": kernel.bound,
        "sampled": kernel.sampled,
    }


class _Shared:
    """Which tensors the shared cache still holds when a kernel begins.

    A tensor that a kernel sweeps again is found there if no more lines than the cache holds were touched since: those
    of the kernel that touched it last or of this one, whichever are more, and those of all kernels between them.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._touched: list[dict[str, float]] = []
        self._last: dict[str, int] = {}

    def missed(self, footprints: dict[str, float]) -> dict[str, float]:
        """For each tensor of the next kernel the lines that it does not find."""
        own = sum(footprints.values())
        found = {}
        for name, lines in footprints.items():
            last = self._last.get(name)
            if last is None:
                found[name] = lines
                continue
            between: dict[str, float] = {}
            for touched in self._touched[last + 1 :]:
                for other, count in touched.items():
                    between[other] = max(between.get(other, 0.0), count)
            before = self._touched[last]
            distance = max(own, sum(before.values())) + sum(between.values())
            found[name] = max(0.0, lines - before[name]) if distance <= self._lines else lines
        self._touched.append(footprints)
        self._last.update(dict.fromkeys(footprints, len(self._touched) - 1))
        return found


def simulate(
    plan: Plan, model: MemoryModel, effort: Effort | None = None, progress: Progress | None = None
) -> PlanReport:
    """What the kernels of a plan do to the memory of a device.

    Args:
        effort: how much of each launch is followed.
        progress: is told the stage, the kernels done and all kernels.

    Raises:
        SimulationError: a kernel cannot be followed.
    """
    effort = effort or Effort()
    report = PlanReport(plan.level, plan.dtype)
    shared = _Shared(model.l2.lines)
    ranges = _ranges(plan)
    known: dict[tuple[Any, ...], Estimate] = {}
    for number, (launch, source) in enumerate(zip(plan.launches, plan.sources, strict=True)):
        places = [a.tensor for a in source.arguments]
        key = (source.text, source.global_size, source.local_size, tuple(plan.tensors[n].storage for n in places))
        if key not in known:
            try:
                traced = TracedLaunch.all_of(source, plan.tensors, model.wave)
                known[key] = _positional(together([estimate(one, model, effort) for one in traced]), places)
            except SimulationError as error:
                raise SimulationError(f"kernel {launch.name} of {plan.model}, level {plan.level}: {error}") from None
        report.kernels.append(_launch(launch, ranges, places, known[key], shared, model))
        if progress is not None:
            progress(f"simulate {plan.level}", number + 1, len(plan.launches))
    return report


def _positional(found: Estimate, places: list[str]) -> Estimate:
    """Footprints by the argument's place, so that kernels of one text share an estimate."""
    order = {name: str(i) for i, name in enumerate(places)}
    found.footprints = {order.get(name, name): f for name, f in found.footprints.items()}
    return found


def _ranges(plan: Plan) -> dict[str, dict[str, float]]:
    """For each intermediate the stretches of memory between the ends of any of them that it takes, and their shares."""
    ends: dict[int, set[int]] = {}
    spans = {}
    for name, place in plan.placement.items():
        first = place.offset
        last = first + max(1, stored_bytes(plan.tensors[name]))
        spans[name] = (place.slot, first, last)
        ends.setdefault(place.slot, set()).update((first, last))
    found = {}
    for name, (slot, first, last) in spans.items():
        cuts = sorted(end for end in ends[slot] if first <= end <= last)
        found[name] = {f"slot {slot} {a}": (b - a) / (last - first) for a, b in itertools.pairwise(cuts)}
    return found


def _launch(
    launch: Launch,
    ranges: dict[str, dict[str, float]],
    places: list[str],
    found: Estimate,
    shared: _Shared,
    model: MemoryModel,
) -> KernelReport:
    where: dict[str, dict[str, float]] = {}
    for place in found.footprints:
        name = places[int(place)] if place.isdecimal() else f"{place} {launch.name}"
        # what lies in one place of memory lies in one place of the cache
        where[place] = ranges.get(name, {name: 1.0})
    together: dict[str, float] = {}
    for place, footprint in found.footprints.items():
        for part, share in where[place].items():
            # two tensors of a kernel meet only where one is written in the other's place
            together[part] = max(together.get(part, 0.0), share * footprint.lines)
    missed = shared.missed(together)
    l2_misses = found.repeated_misses + sum(missed.values())
    written = sum(f.lines for f in found.footprints.values() if f.written)
    read = sum(missed[part] for part in {q for p, f in found.footprints.items() if not f.written for q in where[p]})
    moved = (found.repeated_misses + read + written) * model.line
    times = {
        "arithmetic": launch.operations / model.device.compute.peak_gflops,
        "texture units": found.texel_bytes / model.device.memory.texture_bandwidth,
        "local memory": found.local_bytes / model.device.memory.local_bandwidth,
        "shared cache": found.l2_requests * model.line / model.device.memory.l2_bandwidth,
        "memory": moved / model.device.memory.global_bandwidth,
    }
    bound = max(times, key=lambda name: times[name])
    begins = model.device.compute.launch_us / 1e3
    milliseconds = begins + times[bound] / 1e6
    return KernelReport(
        name=launch.name,
        origin=launch.origin,
        accesses=found.element_accesses,
        requests=found.requests,
        l1_requests=found.l1_requests,
        l1_misses=found.l1_misses,
        l2_requests=found.l2_requests,
        l2_misses=l2_misses,
        texel_bytes=found.texel_bytes,
        local_bytes=found.local_bytes,
        bytes=moved,
        milliseconds=milliseconds,
        bound="launch" if begins > times[bound] / 1e6 else bound,
        sampled=found.sampled,
        error={"accesses": found.error["element_accesses"], "misses": found.error["misses"]},
    )
