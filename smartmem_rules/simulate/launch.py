"""A kernel's launch as a stream of cache lines, through the caches: all of it, or a window of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import item_bytes, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.simulate.accesses import Access, Array, Items, Parameter, Slice
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.simulate.source import KernelText, parse
from smartmem_rules.simulate.trace import Tracer

WARMING = 8
"""The part of a window, an eighth, in which its texture caches fill."""

PRIVATE = "@private"
"""The name under which the arrays of work-items are counted that do not fit in registers."""


@dataclass(frozen=True)
class TracedLaunch:
    """A kernel and how it is launched."""

    text: KernelText
    parameters: dict[str, Parameter]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    @staticmethod
    def of(source: Source, tensors: Mapping[str, Stored], wave: int) -> TracedLaunch:
        """The launch of a source; where the driver chooses the work-group, it is one wave."""
        text = parse(source.text, source.entry)
        written = {a.tensor for a in source.arguments if a.access == "write"}
        parameters = {
            name: _parameter(tensors[argument.tensor], argument.tensor not in written)
            for name, argument in zip(text.parameters, source.arguments, strict=True)
        }
        local = source.local_size or (wave, *(1 for _ in source.global_size[1:]))
        return TracedLaunch(text, parameters, source.global_size, local)

    @staticmethod
    def all_of(source: Source, tensors: Mapping[str, Stored], wave: int) -> list[TracedLaunch]:
        """The launch of a source; of several kernels side by side one for each, with the local memory of all."""
        whole = TracedLaunch.of(source, tensors, wave)
        found = []
        for part in whole.text.parts:
            own = {p: whole.parameters[a] for p, a in zip(part.text.parameters, part.arguments, strict=True)}
            size = (part.groups * whole.local_size[0],)
            found.append(TracedLaunch(part.text, own, size, whole.local_size))
        return found or [whole]

    @property
    def counts(self) -> tuple[int, ...]:
        """Work-groups by dimension."""
        return tuple(-(-g // n) for g, n in zip(self.global_size, self.local_size, strict=True))

    @property
    def groups(self) -> int:
        return math.prod(self.counts)

    def waves_of_group(self, wave: int) -> int:
        return -(-math.prod(self.local_size) // wave)

    def items(self, groups: Array, wave: int) -> Items:
        """The work-items of work-groups, waves filled up with idle ones."""
        size = math.prod(self.local_size)
        padded = self.waves_of_group(wave) * wave
        place = np.arange(padded)
        group_at, local_at, idle = [], [], place >= size
        rest_group, rest_local = groups, np.minimum(place, size - 1)
        for count, extent in zip(self.counts, self.local_size, strict=True):
            group_at.append(np.repeat(rest_group % count, padded))
            local_at.append(np.tile(rest_local % extent, len(groups)))
            rest_group, rest_local = rest_group // count, rest_local // extent
        ids = tuple(g * n + i for g, n, i in zip(group_at, self.local_size, local_at, strict=True))
        active = ~np.tile(idle, len(groups))
        for number, extent in zip(ids, self.global_size, strict=True):
            active &= number < extent
        return Items(
            ids=ids,
            groups=tuple(group_at),
            locals=tuple(local_at),
            global_size=self.global_size,
            local_size=self.local_size,
            active=active,
        )


def _parameter(tensor: Stored, constant: bool) -> Parameter:
    layout = tensor.layout
    size = layout.image_size(tensor.type.shape) if layout.memory == "image" else None
    values = None
    if tensor.role == "constant" and tensor.packed is not None and tensor.packed.dtype.kind in "iub" and size is None:
        values = tensor.packed.reshape(-1)
    return Parameter(tensor.name, item_bytes(tensor.storage), constant, size, stored_bytes(tensor), values)


@dataclass(frozen=True)
class Window:
    """A part of a launch: some work-groups, and of each loop some steps."""

    groups: Array
    slices: Mapping[int, Slice] = field(default_factory=dict)


@dataclass
class Touched:
    """What a window did to one tensor in the shared cache.

    Attributes:
        lines: the lines it touched, each once.
        first: how many line touches were the first of the window, as a count of the whole launch.
        again: misses on lines that the window had touched before, as a count of the whole launch.
        written: whether it wrote them.
    """

    lines: Array
    first: float
    again: float
    written: bool


@dataclass(kw_only=True)
class Traffic:
    """How often a launch uses each kind of memory.

    Attributes:
        requests: lines asked of the texture caches, and lines asked of the shared cache past them: memory accesses.
        element_accesses: accesses of single work-items.
        texel_bytes: bytes that work-items read through texture units, each texel counted as often as it is read.
        local_bytes: bytes that work-items read from local memory and write to it, counted likewise.
        l1_requests, l1_misses: of the texture caches.
        l2_requests: of the shared cache.
    """

    requests: float = 0.0
    element_accesses: float = 0.0
    texel_bytes: float = 0.0
    local_bytes: float = 0.0
    l1_requests: float = 0.0
    l1_misses: float = 0.0
    l2_requests: float = 0.0


@dataclass(kw_only=True)
class Counts(Traffic):
    """What a window did, each number as a count of the whole launch.

    Attributes:
        tensors: what became of each tensor in the shared cache.
        batches: how many times the launch fills the device.
    """

    tensors: dict[str, Touched] = field(default_factory=dict)
    batches: int = 1


def residents(launch: TracedLaunch, model: MemoryModel) -> int:
    """Work-groups that a texture unit holds at a time: as many as its waves and its share of local memory allow."""
    by_waves = model.device.compute.resident_waves // launch.waves_of_group(model.wave)
    by_memory = model.device.memory.unit_memory // max(1, launch.text.local_bytes)
    return max(1, min(by_waves, by_memory))


def batches(launch: TracedLaunch, model: MemoryModel) -> int:
    """How many times the launch fills the device."""
    return -(-launch.groups // (model.texture_units * residents(launch, model)))


def trace(launch: TracedLaunch, window: Window, model: MemoryModel, merge: bool = True) -> list[Access]:
    """The accesses of a window."""
    items = launch.items(window.groups, model.wave)
    return Tracer(launch.text, launch.parameters, items, merge, window.slices).run()


@dataclass
class _Stream:
    """Line requests: where each stands in time, whose they are, and what they count for."""

    wave: Array
    time: Array
    line: Array
    weight: Array
    through_l1: Array
    tensor: Array


def simulate_window(launch: TracedLaunch, window: Window, model: MemoryModel) -> Counts:
    """A window through caches that are empty before."""
    traced = trace(launch, window, model)
    accesses = [a for a in traced if _is_memory(a, model)]
    share = launch.groups / len(window.groups)
    counts = Counts(batches=batches(launch, model))
    for access in traced:
        if access.space.kind == "local":
            done = float(np.count_nonzero(access.mask)) * share * access.weight
            counts.local_bytes += done * access.width * access.space.item_bytes
    parts, names, written = [], [], []
    for number, access in enumerate(accesses):
        private = access.space.kind == "private"
        names.append(PRIVATE if private else launch.parameters[access.space.name].name)
        written.append(access.write)
        weight = share * access.weight
        done = float(np.count_nonzero(access.mask)) * weight
        counts.element_accesses += done
        if access.space.kind == "image" and not access.write:
            counts.texel_bytes += done * 4 * access.space.item_bytes
        parts.append(_requests(access, number, weight, launch, window, model))
    if not parts:
        return counts
    stream = _ordered(parts, launch, window, model)
    units = _unit_of_wave(launch, window, model)[stream.wave]
    counts.requests = float(stream.weight.sum())
    reads = stream.through_l1
    counts.l1_requests = float(stream.weight[reads].sum())
    hits = model.l1.hits(stream.line[reads], units[reads])
    counts.l1_misses = _misses(stream.weight[reads], hits, len(window.groups) < launch.groups or bool(window.slices))
    passed = np.ones(len(stream.line), dtype=bool)
    passed[np.flatnonzero(reads)[hits]] = False
    _shared(counts, stream, passed, names, written, model)
    return counts


def _misses(weight: Array, hits: Array, partial: bool) -> float:
    """Misses of the texture caches. Those of a window are empty at its beginning, which is no part of the rate."""
    begin = len(hits) // WARMING if partial else 0
    counted = float(weight[begin:].sum())
    return float(weight[begin:][~hits[begin:]].sum()) * (float(weight.sum()) / counted if counted else 0.0)


def _is_memory(access: Access, model: MemoryModel) -> bool:
    """Local memory is on chip; so are a work-item's arrays that fit in its registers."""
    space = access.space
    if space.kind == "private":
        return space.elements * space.item_bytes > model.device.compute.register_array
    return space.kind != "local"


def _requests(
    access: Access, number: int, weight: float, launch: TracedLaunch, window: Window, model: MemoryModel
) -> _Stream:
    """The lines that waves ask for: what the work-items of a wave access in one line is one request."""
    lines = _lines(access, launch, window, model)
    waves = len(access.mask) // model.wave
    steps = access.time.size
    mask = access.mask.reshape(waves, model.wave, steps)
    sides = []
    for side in lines:
        spread = np.where(mask, side.reshape(waves, model.wave, steps), -1)
        sides.append(spread.transpose(0, 2, 1))
    together = np.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
    together = np.sort(together, axis=2)
    new = together >= 0
    new[:, :, 1:] &= together[:, :, 1:] != together[:, :, :-1]
    wave, step, place = np.nonzero(new)
    line = together[wave, step, place]
    read_image = access.space.kind == "image" and not access.write
    count = len(line)
    return _Stream(
        wave,
        access.time.reshape(-1)[step],
        line,
        np.full(count, weight),
        np.full(count, read_image),
        np.full(count, number),
    )


def _lines(access: Access, launch: TracedLaunch, window: Window, model: MemoryModel) -> list[Array]:
    """The line numbers of an access, in a range of their own for each tensor; two where elements may straddle."""
    space = access.space
    order = [*launch.parameters, PRIVATE]
    base = (order.index(PRIVATE if space.kind == "private" else space.name) + 1) << 36
    if space.kind == "image":
        texel = 4 * space.item_bytes
        size = launch.parameters[space.name].size
        assert size is not None
        return [base + model.texel_lines(access.place[0], access.place[1], texel, size[0])]
    if space.kind == "private":
        # the arrays of a wave's work-items lie element by element side by side, in the stack of the wave's place
        slot = _slot_of_wave(launch, window, model)
        lane = np.tile(np.arange(model.wave), len(slot)).reshape((-1,) + (1,) * (access.place[0].ndim - 1))
        stack = np.repeat(slot, model.wave).reshape(lane.shape) * space.elements
        first = ((stack + access.place[0]) * model.wave + lane) * space.item_bytes
    else:
        first = access.place[0] * space.item_bytes
    start = first // model.line
    last = (first + access.width * space.item_bytes - 1) // model.line
    return [base + start] if np.array_equal(start, last) else [base + start, base + last]


def _unit_of_wave(launch: TracedLaunch, window: Window, model: MemoryModel) -> Array:
    """The texture unit of each wave: work-groups are dealt out in turns."""
    return np.repeat(window.groups % model.texture_units, launch.waves_of_group(model.wave))


def _slot_of_wave(launch: TracedLaunch, window: Window, model: MemoryModel) -> Array:
    """The place of each wave on the device."""
    per_group = launch.waves_of_group(model.wave)
    places = model.texture_units * residents(launch, model)
    return np.repeat(window.groups % places, per_group) * per_group + np.tile(np.arange(per_group), len(window.groups))


def _ordered(parts: list[_Stream], launch: TracedLaunch, window: Window, model: MemoryModel) -> _Stream:
    """All requests in the order in which the device sees them: resident waves take turns, an access each."""
    joined = [np.concatenate([getattr(p, name) for p in parts]) for name in _Stream.__dataclass_fields__]
    stream = _Stream(*joined)
    places = model.texture_units * residents(launch, model)
    batch = np.repeat(window.groups // places, launch.waves_of_group(model.wave))
    slot = _slot_of_wave(launch, window, model)
    waves = int(slot.max()) + 1
    key = (batch[stream.wave] * (int(stream.time.max()) + 1) + stream.time) * waves + slot[stream.wave]
    order = np.argsort(key, kind="stable")
    return _Stream(*(column[order] for column in joined))


def _shared(
    counts: Counts, stream: _Stream, passed: Array, names: list[str], written: list[bool], model: MemoryModel
) -> None:
    """The shared cache: first touches of a line and misses on lines that were touched before, by tensor."""
    line, weight, number = stream.line[passed], stream.weight[passed], stream.tensor[passed]
    counts.l2_requests = float(weight.sum())
    # tensors lie anywhere: the sets of their first lines are spread
    hits = model.l2.hits(line + (line >> 36) * 977)
    _, first_at = np.unique(line, return_index=True)
    first = np.zeros(len(line), dtype=bool)
    first[first_at] = True
    for name in dict.fromkeys(names):
        mine = np.isin(number, [i for i, n in enumerate(names) if n == name])
        if mine.any():
            begins, repeats = mine & first, mine & ~first & ~hits
            counts.tensors[name] = Touched(
                np.sort(line[begins]),
                float(weight[begins].sum()),
                float(weight[repeats].sum()),
                any(written[i] for i, n in enumerate(names) if n == name),
            )
