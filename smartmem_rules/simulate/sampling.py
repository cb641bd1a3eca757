"""Windows of a launch that is too large to follow whole, and what they say about all of it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields

import numpy as np

from smartmem_rules.records import dataclass
from smartmem_rules.simulate.accesses import Access, Array, Slice
from smartmem_rules.simulate.launch import (
    Counts,
    TracedLaunch,
    Traffic,
    Window,
    batches,
    residents,
    simulate_window,
    trace,
)
from smartmem_rules.simulate.memory import MemoryModel

WINDOWS = 6
"""Independent windows of a sampled launch."""

SMALLEST_SLICE = 4
"""Steps of a loop that a window keeps at least, so that neighbours in lines are seen together."""

COUNTED = tuple(one.name for one in fields(Traffic))
"""What windows count, each a count of the whole launch."""

_T_FIVE = 2.571
"""Student's t at 97.5 % for five degrees of freedom."""


@dataclass(frozen=True)
class Effort:
    """How much is followed.

    Attributes:
        exact: accesses of single work-items up to which a launch is followed whole.
        window: accesses of one window of a larger launch.
        seed: of the places of the windows.
    """

    exact: int = 1_500_000
    window: int = 200_000
    seed: int = 0


@dataclass(frozen=True)
class Footprint:
    """The lines of a tensor that a launch touches, each counted once, and whether it writes them."""

    lines: float
    written: bool


@dataclass(kw_only=True)
class Estimate(Traffic):
    """What a launch does.

    Attributes:
        repeated_misses: misses of the shared cache on lines that the launch had touched before.
        footprints: by the kernel's tensors.
        error: half widths of the 95 % intervals of `element_accesses` and of `misses`; zero for a launch that was
            followed whole.
        sampled: whether it was sampled.
    """

    repeated_misses: float = 0.0
    footprints: dict[str, Footprint] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=lambda: {"element_accesses": 0.0, "misses": 0.0})
    sampled: bool = False

    @property
    def misses(self) -> float:
        """Of all caches, if the shared cache held nothing before."""
        return self.l1_misses + self.repeated_misses + sum(f.lines for f in self.footprints.values())


class _Beginning(Mapping[int, Slice]):
    """The first two steps of every loop: enough to see what changes in it."""

    def __getitem__(self, key: int) -> Slice:
        return Slice(0, 2)

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def get(self, key: int, default: object = None) -> Slice:
        return Slice(0, 2)


def estimate(launch: TracedLaunch, model: MemoryModel, effort: Effort) -> Estimate:
    """What a launch does to memory: followed whole if it is small, else by independent windows."""
    probe = trace(launch, Window(np.arange(1), _Beginning()), model)
    items = math.prod(launch.local_size)
    whole = launch.groups * items * _accesses(probe, {})
    if whole <= effort.exact:
        return combined([simulate_window(launch, Window(np.arange(launch.groups)), model)], model, _caps(launch, model))
    windows = choose_windows(launch, model, effort, probe)
    counts = [simulate_window(launch, window, model) for window in windows]
    caps = _caps(launch, model)
    found = combined(counts, model, caps)
    found.sampled = True
    # the jackknife: how the result moves when one window is left out
    rest = [combined(counts[:i] + counts[i + 1 :], model, caps) for i in range(len(counts))]
    for name in found.error:
        values = np.array([getattr(one, name) for one in rest])
        spread = math.sqrt((len(values) - 1) / len(values) * float(((values - values.mean()) ** 2).sum()))
        found.error[name] = _T_FIVE * spread
    return found


def together(found: Sequence[Estimate]) -> Estimate:
    """Kernels side by side in one launch; a tensor that several of them read is met once."""
    if len(found) == 1:
        return found[0]
    whole = Estimate(sampled=any(one.sampled for one in found))
    for name in (*COUNTED, "repeated_misses"):
        setattr(whole, name, sum(getattr(one, name) for one in found))
    for one in found:
        for tensor, footprint in one.footprints.items():
            other = whole.footprints.get(tensor, footprint)
            lines = max(other.lines, footprint.lines)
            whole.footprints[tensor] = Footprint(lines, other.written or footprint.written)
    whole.error = {name: math.hypot(*(one.error[name] for one in found)) for name in whole.error}
    return whole


def _accesses(probe: Sequence[Access], kept: Mapping[int, int]) -> int:
    """Accesses of one work-item, if loops keep so many steps."""
    return sum(math.prod(min(loop.steps, kept.get(loop.node, loop.steps)) for loop in a.loops) for a in probe) or 1


def choose_windows(launch: TracedLaunch, model: MemoryModel, effort: Effort, probe: Sequence[Access]) -> list[Window]:
    """Windows spread over the launch: whole fillings of the model, and of long loops a part of the steps."""
    random = np.random.default_rng((effort.seed, zlib.crc32(str(launch.global_size).encode())))
    per_batch = model.texture_units * residents(launch, model)
    in_batch = min(per_batch, launch.groups) * math.prod(launch.local_size)
    kept = {loop.node: loop.steps for access in probe for loop in access.loops}
    steps = dict(kept)
    while in_batch * _accesses(probe, kept) > effort.window:
        cuttable = [n for n in kept if kept[n] > SMALLEST_SLICE and steps[n] > 2 * SMALLEST_SLICE]
        if not cuttable:
            break
        gains = {n: _accesses(probe, {**kept, n: _halved(kept[n])}) for n in cuttable}
        longest = min(cuttable, key=lambda n: (gains[n], -kept[n]))
        kept[longest] = _halved(kept[longest])
    count = batches(launch, model)
    together = max(1, min(count, effort.window // max(1, in_batch * _accesses(probe, kept))))
    starts = _strata(random, WINDOWS, count - together + 1)
    places = {n: _strata(random, WINDOWS, steps[n] - kept[n] + 1, shuffled=True) for n in kept if kept[n] < steps[n]}
    windows = []
    for i in range(WINDOWS):
        first = int(starts[i]) * per_batch
        groups = np.arange(first, min(first + together * per_batch, launch.groups))
        windows.append(Window(groups, {n: Slice(int(at[i]), kept[n]) for n, at in places.items()}))
    return windows


def _halved(steps: int) -> int:
    """Half as many, whole texels and lines of them where possible."""
    return max(SMALLEST_SLICE, steps // 2 // SMALLEST_SLICE * SMALLEST_SLICE)


def _strata(random: np.random.Generator, count: int, places: int, shuffled: bool = False) -> Array:
    """One place in each of `count` equal parts of the places."""
    found = np.minimum(((np.arange(count) + random.random(count)) * places / count).astype(np.int64), places - 1)
    if shuffled:
        random.shuffle(found)
    return found


def _caps(launch: TracedLaunch, model: MemoryModel) -> dict[str, float]:
    """The lines of whole tensors."""
    return {
        p.name: float(-(-p.bytes // model.line) + 1 if p.size is None else model.image_lines(4 * p.item_bytes, *p.size))
        for p in launch.parameters.values()
    }


def combined(counts: Sequence[Counts], model: MemoryModel, caps: Mapping[str, float]) -> Estimate:
    """What windows say about the launch.

    A line's first touch in a window is the launch's first touch, or a return after a time that the window does not
    show. Lines that several windows share say which: the footprint of n windows grows as n to a power, from which that
    of the launch follows. A return finds its line gone if in one filling of the device more lines pass than the shared
    cache holds.
    """
    found = Estimate()
    n = len(counts)
    for name in COUNTED:
        setattr(found, name, sum(getattr(c, name) for c in counts) / n)
    firsts: dict[str, float] = {}
    for name in dict.fromkeys(t for c in counts for t in c.tensors):
        seen = [c.tensors[name] for c in counts if name in c.tensors]
        firsts[name] = sum(t.first for t in seen) / n
        found.repeated_misses += sum(t.again for t in seen) / n
        lines = _footprint([t.lines for t in seen], firsts[name], caps.get(name))
        found.footprints[name] = Footprint(min(lines, firsts[name]), any(t.written for t in seen))
    # what the cut loops of a window show once may come again in the same filling: it has no more lines than the launch
    sweep = sum(min(first / counts[0].batches, found.footprints[name].lines) for name, first in firsts.items())
    if n > 1 and sweep > model.l2.lines:
        found.repeated_misses += sum(firsts[name] - found.footprints[name].lines for name in firsts)
    return found


def _footprint(windows: Sequence[Array], first: float, cap: float | None) -> float:
    """The lines that the whole launch touches, from those of its windows."""
    sizes = [len(lines) for lines in windows]
    union = len(np.unique(np.concatenate(windows)))
    mean = sum(sizes) / len(sizes)
    if len(windows) == 1 or mean == 0:
        return float(union)
    power = max(0.0, math.log(union / mean) / math.log(len(windows)))
    lines = union * (max(first / mean, len(windows)) / len(windows)) ** power
    return float(lines) if cap is None else min(float(lines), cap)
