"""Times one kernel in two sizes beside each other on a device."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from smartmem_rules.emit.plan import Variant
from smartmem_rules.plan.artefact import Enqueue, Plan
from smartmem_rules.plan.kernel.launch import Recorded
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.executor import Executor, RunError
from smartmem_rules.runtime.programs.compiling import BuildError
from smartmem_rules.tensor.primitives import storage_dtype

ROUNDS = 9
_FIRST = 3
_HOPELESS = 1.1
"""A candidate whose best of the first rounds is this much slower than the incumbent's best is not measured further."""
_WINS = 8
"""Of nine rounds: by chance a kernel as fast wins so many in 2 of 100 cases (sign test)."""
_GAIN = 0.98
_TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a candidate took beside the incumbent.

    Attributes:
        ratio: the median of its times over the incumbent's of the same round; infinite where it does not work.
        better: whether it is faster beyond noise.
        reason: why it does not work.
        device, driver: what measured it.
    """

    incumbent_ms: float
    ratio: float
    better: bool
    device: str
    driver: str
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """Two variants of a kernel to be measured; `device` is the name by which a worker finds its device."""

    incumbent: Variant
    candidate: Variant
    device: str
    seed: int


def measure(job: Job) -> Measured:
    """Measure a job on this computer.

    Raises:
        DeviceError: it has no such device.
        BuildError, RunError: the incumbent does not work.
    """
    device = choose(job.device)
    incumbent = runnable(job.incumbent, device, job.seed)
    try:
        candidate = runnable(job.candidate, device, job.seed)
        reason = "" if _same(incumbent, candidate, job) else "its results differ"
    except (BuildError, RunError) as error:
        reason = str(error)
    if reason:
        return Measured(
            incumbent_ms=0.0,
            ratio=math.inf,
            better=False,
            device=device.name,
            driver=device.driver,
            reason=reason,
        )
    return compare(incumbent, candidate, device)


def compare(incumbent: Executor, candidate: Executor, device: Device) -> Measured:
    """Time two kernels in turns, until it is clear that the second is slower or all rounds are done."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(ROUNDS):
        # whoever comes second finds the caches as the first left them: they take turns at that too
        for executor, times in ((incumbent, theirs), (candidate, mine))[:: 1 if number % 2 else -1]:
            times.append(executor.profile({})[0][1])
        if number + 1 >= _FIRST and min(mine) > _HOPELESS * min(theirs):
            break
    ratios = [a / max(b, 1e-9) for a, b in zip(mine, theirs, strict=True)]
    ratio = statistics.median(ratios)
    wins = sum(one < 1.0 for one in ratios)
    better = len(ratios) == ROUNDS and wins >= _WINS and ratio < _GAIN
    return Measured(
        incumbent_ms=min(theirs),
        ratio=ratio,
        better=better,
        device=device.name,
        driver=device.driver,
    )


_recent: dict[tuple[str, int, str], tuple[Variant, Executor]] = {}


def runnable(variant: Variant, device: Device, seed: int) -> Executor:
    """A kernel on a device, over random operands; the last two are kept."""
    key = (variant.source.text, seed, device.name)
    kept = _recent.get(key)
    if kept is not None and kept[0] is variant:
        return kept[1]
    tensors = {name: _filled(stored, seed) for name, stored in variant.tensors.items()}
    writes = {a.tensor for a in variant.source.arguments if a.access == "write"}
    for name in writes:
        if variant.tensors[name].packed is None:  # counters of work-groups that meet begin with zeros
            tensors[name] = replace(variant.tensors[name], role="intermediate")
    launch = Recorded(kernel=Kernel(name="kernel", form="contraction"))
    enqueue = Enqueue(launch=launch, source=variant.source)
    plan = Plan(
        model="kernel",
        device=device.name,
        level="",
        dtype="",
        inputs=[],
        outputs=[],
        tensors=tensors,
        enqueues=[enqueue],
        slots=[],
        placement={},
        demands=variant.demands,
    )
    executor = Executor(plan, device)
    while len(_recent) > 1:
        _recent.pop(next(iter(_recent)))
    _recent[key] = (variant, executor)
    return executor


def _filled(stored: Stored, seed: int) -> Stored:
    """The tensor with random numbers in it, where it holds no constant; integers are zero, a valid index."""
    if stored.packed is not None:
        return replace(stored, role="constant")
    return replace(stored, role="constant", packed=pack(_values(stored, seed), stored.layout, stored.storage))


@lru_cache(maxsize=4)
def _normal(count: int, seed: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).standard_normal(count, dtype=np.float32)


def _values(stored: Stored, seed: int) -> np.ndarray[Any, np.dtype[Any]]:
    dtype = storage_dtype(stored.type.dtype)
    if dtype.kind in "iub":
        return np.zeros(stored.type.shape, dtype)
    return _normal(stored.type.elements, seed).reshape(stored.type.shape).astype(np.float32)


def _same(incumbent: Executor, candidate: Executor, job: Job) -> bool:
    """Whether both kernels write the same."""
    results = [_results(executor, job.incumbent) for executor in (incumbent, candidate)]
    for one, other in zip(*results, strict=True):
        scale = float(np.abs(one).max(initial=0.0)) or 1.0
        if not np.allclose(one, other, rtol=0, atol=_TOLERANCE * scale, equal_nan=True):
            return False
    return True


def _results(executor: Executor, variant: Variant) -> list[np.ndarray[Any, np.dtype[Any]]]:
    executor.run({})
    read_back = [name for name in variant.results if variant.tensors[name].layout.memory == "buffer"]
    return [executor.fetch(name).astype(np.float64) for name in read_back]
