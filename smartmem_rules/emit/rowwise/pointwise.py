"""Pointwise and window kernels: every work-item computes elements along one axis of the output.

On CPUs a work-item takes whole rows of the axis that is contiguous in the output; on GPUs it takes one vector, or those
of some places beside each other, whose reads it then shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.emit.c.expressions import Value, whole_index
from smartmem_rules.emit.c.kernel import Emission, lane_reader, with_lane
from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.c.window_sums import window_sums
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.schedule.grid import chunk_of
from smartmem_rules.plan.schedule.loops import ElementLoops, writes_images
from smartmem_rules.plan.schedule.neighbours import NeighbourWindows
from smartmem_rules.plan.schedule.records import ItemSchedule, VectorSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, Reduce, substitute_variables, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import several, surely_below
from smartmem_rules.tensor.substitution import unravel


def emit_pointwise(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    kernel = launch.kernel
    emission = Emission(
        launch=launch,
        target=target,
        tensors=tensors,
        width=TEXEL_LANES if writes_images(kernel, tensors) else target.width,
    )
    most = 1 if target.is_cpu else schedule_of(kernel, VectorSchedule).places
    loops = ElementLoops.of(kernel, tensors, target.width, most)
    count, axis = loops.outer_count, loops.lanes
    outer_var = Var("outer", count)
    values = dict(zip(loops.outer, unravel(variable(outer_var), tuple(v.extent for v in loops.outer)), strict=True))
    writer, expressions = emission.writer, emission.expressions
    if target.is_cpu:
        schedule = schedule_of(kernel, ItemSchedule)
        together = schedule.window_rows
        turns = count // together
        chunk = chunk_of(turns, schedule.items)
        turn = Var("group", turns) if together > 1 else outer_var
        name = expressions.name(turn)
        head = f"for (int {name} = item * {chunk}; {name} < min((item + 1) * {chunk}, {turns}); ++{name})"
        with expressions.scope(head):
            if together > 1:
                _windows(emission, kernel, loops, turn, together)
            else:
                _row(emission, kernel, axis, values, None)
        return emission.source("pointwise.cl", -(-turns // chunk), rounded=not _sums(kernel))
    name = expressions.name(outer_var)
    number, vector = _item(loops.vectors, loops.inside)
    writer.line(f"const int {name} = {number};")
    with expressions.scope(f"if ({name} < {count})"):
        if loops.neighbours is None:
            _row(emission, kernel, axis, values, vector)
        else:
            last, neighbours = loops.outer[-1], loops.neighbours
            each, shared = Var(last.name, last.extent * neighbours.extent), values.pop(last)
            values[each] = add(scale(shared, neighbours.extent), variable(neighbours))
            place = expressions.name(neighbours)
            writer.line("#pragma unroll")
            with expressions.loop(neighbours, f"for (int {place} = 0; {place} < {neighbours.extent}; ++{place})"):
                _row(emission, kernel, axis, values, vector)
    return emission.source("pointwise.cl", count * loops.vectors, rounded=not _sums(kernel))


def _windows(emission: Emission, kernel: Kernel, loops: ElementLoops, group: Var, together: int) -> None:
    """Write neighbouring rows vector by vector: first the sums of all their windows, then the result of each row."""
    expressions, text = emission.expressions, emission.target.device.text
    found = NeighbourWindows.of(kernel, loops, emission.width, together, text.window_loads)
    axis = loops.lanes
    assert found is not None
    assert axis is not None
    extents = tuple(v.extent for v in loops.outer)
    places = (add(scale(variable(group), together), Index(q)) for q in range(together))
    rows = [dict(zip(loops.outer, unravel(place, extents), strict=True)) for place in places]
    lane, block = Var("lane", emission.width), Var("block", axis.extent // emission.width)
    with expressions.loop(block):
        across = add(scale(whole_index(block), emission.width), variable(lane))
        window = replace(found.reduce, body=substitute_variables(found.reduce.body, {axis: across}))
        sums = window_sums(expressions, window, rows, lane, text.window_steps)
        for row, name in zip(rows, sums, strict=True):
            expressions.internal[name] = lane_reader(Value(name, emission.width))
            one = found.instead(kernel, Read(name, (variable(lane),), "float32"))
            with expressions.scope(""):
                _elements(emission, one, {**row, axis: across}, lane)


def _item(vectors: int, inside: int) -> tuple[str, str]:
    """A work-item's place along the other axes and its vector, so that neighbours write neighbouring texels."""
    if not several(inside) or not several(vectors):
        return f"item / {vectors}", f"item % {vectors}"
    return f"item / {vectors * inside} * {inside} + item % {inside}", f"item / {inside} % {vectors}"


def _row(emission: Emission, kernel: Kernel, axis: Var | None, outer: dict[Var, Index], item: str | None) -> None:
    if axis is None:
        _elements(emission, kernel, outer, None)
        return
    width = emission.width
    vectorised = not surely_below(axis.extent, width) and _any_vectors(emission, kernel)
    images = any(emission.accesses[s.tensor].is_image for s in kernel.stores)
    if not vectorised and not images:
        head = None if item is None else _lanes(emission, axis, item)
        with emission.expressions.loop(axis, head):
            _elements(emission, kernel, {**outer, axis: variable(axis)}, None)
        return
    whole, rest = divmod(axis.extent, width)
    lane, block = Var("lane", width), Var("block", whole if is_symbolic(whole) else max(whole, 1))
    name = emission.expressions.name(block)
    if whole:
        head = f"for (int {name} = 0; {name} < {whole}; ++{name})" if item is None else f"if ({item} < {whole})"
        with emission.expressions.scope(head):
            if item is not None:
                emission.writer.line(f"const int {name} = {item};")
            base = Index(0) if whole == 1 else variable(block)
            _elements(emission, kernel, {**outer, axis: add(scale(base, width), variable(lane))}, lane)
    if rest:
        with emission.expressions.scope("" if item is None else f"if ({item} == {whole})"):
            _tail(emission, kernel, axis, outer, whole * width, rest)


def _lanes(emission: Emission, axis: Var, item: str) -> str:
    name = emission.expressions.name(axis)
    width = emission.width
    start = f"({item}) * {width}"
    return f"for (int {name} = {start}; {name} < min({start} + {width}, {axis.extent}); ++{name})"


def _sums(kernel: Kernel) -> bool:
    """Whether an element is a sum, for whose products a multiply-add is faster and no less exact."""
    values = [stage.body for stage in kernel.stages] + [store.value for store in kernel.stores]
    return kernel.contraction is not None or any(isinstance(part, Reduce) for value in values for part in walk(value))


def _any_vectors(emission: Emission, kernel: Kernel) -> bool:
    return any(emission.expressions.has_vectors(s.value.dtype) for s in kernel.stores)


def _tail(emission: Emission, kernel: Kernel, axis: Var, outer: dict[Var, Index], start: int, rest: int) -> None:
    """The last, partly filled vector."""
    images = [s for s in kernel.stores if emission.accesses[s.tensor].is_image]
    buffers = [s for s in kernel.stores if s not in images]
    if images:
        _tail_texels(emission, kernel, images, axis, outer, start, rest)
    if buffers:
        tail = Var("tail", rest)
        with emission.expressions.loop(tail):
            values = {**outer, axis: add(variable(tail), Index(start))}
            _stages(emission, kernel, values, None)
            for store in buffers:
                emission.store(store, values, None)


def _tail_texels(
    emission: Emission,
    kernel: Kernel,
    stores: list[Store],
    axis: Var,
    outer: dict[Var, Index],
    start: int,
    rest: int,
) -> None:
    """Texels whose last lanes lie past the end of the axis are filled up with zeros."""
    texts: dict[int, list[str]] = {i: [] for i in range(len(stores))}
    for place in range(rest):
        values = {**outer, axis: Index(start + place)}
        results = [emission.expressions.temporary() for _ in stores]
        emission.writer.line(f"float {', '.join(results)};")
        with emission.expressions.scope(""):
            _stages(emission, kernel, values, None)
            for i, store in enumerate(stores):
                value = emission.expressions.value(substitute_variables(store.value, values))
                emission.writer.line(f"{results[i]} = {value.text};")
                texts[i].append(results[i])
    for i, store in enumerate(stores):
        vector = f"(float4)({', '.join(texts[i] + ['0.0f'] * (4 - rest))})"
        emission.texel(store, {**outer, axis: Index(start)}, vector)


def _stages(emission: Emission, kernel: Kernel, values: Mapping[Var, Index], lane: Var | None) -> None:
    for number, stage in enumerate(kernel.stages):
        body = with_lane(stage.body, {before.name for before in kernel.stages[:number]}, lane)
        value = emission.expressions.value(substitute_variables(body, values), lane)
        emission.expressions.internal[stage.name] = lane_reader(value)


def _elements(emission: Emission, kernel: Kernel, values: Mapping[Var, Index], lane: Var | None) -> None:
    _stages(emission, kernel, values, lane)
    staged = {stage.name for stage in kernel.stages}
    for store in kernel.stores:
        access = emission.accesses[store.tensor]
        if lane is None and access.is_image:
            value = emission.expressions.value(substitute_variables(store.value, values))
            emission.texel(store, values, f"(float4)({value.text}, 0.0f, 0.0f, 0.0f)")
        else:
            emission.store(replace(store, value=with_lane(store.value, staged, lane)), values, lane)
