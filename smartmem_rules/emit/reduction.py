"""Row reductions: softmax, normalisations, means and whatever is computed from a row together with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.emit.expressions import Team, Value
from smartmem_rules.emit.kernel import Emission, LocalArray, Target
from smartmem_rules.emit.pointwise import emit_pointwise, lane_axis
from smartmem_rules.emit.shared_terms import share_terms
from smartmem_rules.plan.model import Kernel, Source, Store, Stored
from smartmem_rules.plan.row_arrays import storage_of
from smartmem_rules.tensor.expr import Reduce, substitute_variables, walk
from smartmem_rules.tensor.index import Index, Var, add, scale, variable
from smartmem_rules.tensor.ranges import maximum, several, surely_below
from smartmem_rules.tensor.substitution import substitute, unravel


def emit_reduction(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> Source:
    block_rows = kernel.schedule.get("block_rows")
    if block_rows is None and _lanes_across_rows(kernel, target, tensors):
        return emit_pointwise(kernel, target, tensors)
    images = any(tensors[s.tensor].layout.memory == "image" for s in kernel.stores)
    emission = Emission(kernel, target, tensors, 4 if images else target.width)
    rows = tuple(v for v in kernel.axes if several(v.extent))
    packed = _packed_row(kernel, tensors)
    if packed is not None:
        return _texel_rows(emission, kernel, rows, packed, target, tensors)
    if not target.is_cpu:
        return _team_rows(emission, kernel, rows)
    count = math.prod(v.extent for v in rows)
    chunk = block_rows or maximum(1, -(-count // kernel.schedule["items"]))
    row = Var("row", count)
    values = dict(zip(rows, unravel(variable(row), tuple(v.extent for v in rows)), strict=True))
    name = emission.expressions.name(row)
    head = f"for (int {name} = item * {chunk}; {name} < min((item + 1) * {chunk}, {count}); ++{name})"
    with emission.expressions.scope(head):
        emit_row(emission, kernel, values)
    return emission.source("reduction.cl", (-(-count // chunk),), (1,))


def _team_rows(emission: Emission, kernel: Kernel, rows: tuple[Var, ...]) -> Source:
    """On GPUs neighbouring work-items share a row, whose arrays lie in local memory."""
    count = math.prod(v.extent for v in rows)
    size, teams = kernel.schedule["team"], kernel.schedule["teams"]
    emission.storage = storage_of(kernel.stages, kernel.stores[-1].value) if len(kernel.stores) == 1 else {}
    row = Var("row", count)
    expressions = emission.expressions
    values = dict(zip(rows, unravel(variable(row), tuple(v.extent for v in rows)), strict=True))
    emission.writer.line("const int thread = (int)get_local_id(0);")
    # a team behind the last row repeats it: every work-item has to come to every barrier
    emission.writer.line(f"const int {expressions.name(row)} = min(item / {size}, {count - 1});")
    if size > 1:
        emission.shared.append(LocalArray("float", "across", size * teams))
        expressions.team = Team(size, f"(thread % {size})", "thread", "across", teams, f"(thread / {size})")
    emit_row(emission, kernel, values)
    return emission.source("reduction.cl", (-(-count // teams) * teams * size,), (teams * size,))


def _lanes_across_rows(kernel: Kernel, target: Target, tensors: Mapping[str, Stored]) -> bool:
    """Whether neighbouring rows lie side by side, so that one vector holds a statistic of several rows."""
    if any(s.local for s in kernel.stores) or any(s.axes for s in kernel.stages):
        return False
    axis = lane_axis(kernel, tensors)
    if axis is None or surely_below(axis.extent, target.width):
        return False
    images = any(tensors[t].layout.memory == "image" for t in kernel.writes)
    probe = Emission(kernel, target, tensors, 4 if images else target.width)
    reading = [s.body for s in kernel.stages if any(isinstance(n, Reduce) for n in walk(s.body))]
    names = {s.name: (lambda read, lane: Value("", 1)) for s in kernel.stages}
    probe.expressions.internal.update(names)
    return bool(reading) and all(probe.expressions.is_contiguous(body, axis) for body in reading)


def emit_row(emission: Emission, kernel: Kernel, values: dict[Var, Index]) -> None:
    stages, stored = kernel.stages, tuple(store.value for store in kernel.stores)
    if emission.target.is_cpu:
        stages, stored = share_terms(stages, stored)
    for stage in stages:
        body = substitute_variables(stage.body, values)
        emission.stage(type(stage)(stage.name, stage.axes, body, stage.dtype))
    for store, value in zip(kernel.stores, stored, strict=True):
        placed = Store(
            store.tensor,
            tuple(substitute(i, values) for i in store.indices),
            substitute_variables(value, values),
            store.local,
        )
        write_row(emission, placed)


def write_row(emission: Emission, store: Store) -> None:
    """What is stored of a row along its local axes; the members of a team share the elements."""
    axes = tuple(v for v in store.local if several(v.extent))
    access = emission.accesses[store.tensor]
    if access.is_image:
        _write_texels(emission, store, axes)
    else:
        emission.over(
            axes, store.value, lambda body, values, lane: emission.store(replace(store, value=body), values, lane)
        )


def _write_texels(emission: Emission, store: Store, axes: tuple[Var, ...]) -> None:
    """Loops over a row's texels; the lane axis of the image runs inside the row, or there is none."""
    lane_axis = emission.tensors[store.tensor].layout.lane_axis
    along = None
    if lane_axis is not None:
        along = next((v for v in axes if store.indices[lane_axis] == variable(v)), None)
    outer = tuple(v for v in axes if v is not along)

    team = emission.expressions.team

    def texels() -> None:
        if along is None:
            emission.once(lambda: write_single(emission, store, {}))
            return
        whole, rest = divmod(along.extent, 4)
        lane, block = Var("lane", 4), Var(f"{along.name}_block", whole)
        if whole:
            head = team.head(emission.expressions.name(block), whole) if team else None
            with emission.expressions.loop(block, head):
                base = variable(block)
                emission.store(store, {along: add(scale(base, 4), variable(lane))}, lane)
        if rest:
            emission.once(lambda: _last_texel(emission, store, along, whole * 4, rest))

    _nest(emission, outer, texels)


def _last_texel(emission: Emission, store: Store, along: Var, start: int, rest: int) -> None:
    texts = [
        emission.expressions.value(substitute_variables(store.value, {along: Index(start + place)})).text
        for place in range(rest)
    ]
    vector = f"(float4)({', '.join(texts + ['0.0f'] * (4 - rest))})"
    write_texel(emission, store, {along: Index(start)}, vector)


def _nest(emission: Emission, axes: tuple[Var, ...], inner: object) -> None:
    if not axes:
        inner()  # type: ignore[operator]
        return
    with emission.expressions.loop(axes[0]):
        _nest(emission, axes[1:], inner)


def write_texel(emission: Emission, store: Store, values: Mapping[Var, Index], vector: str) -> None:
    indices = tuple(substitute(i, values) for i in store.indices)
    emission.writer.line(emission.accesses[store.tensor].write_texel(indices, vector, emission.expressions.index))


def write_single(emission: Emission, store: Store, values: Mapping[Var, Index]) -> None:
    """One element: in a buffer, or in a texel of its own."""
    if emission.accesses[store.tensor].is_image:
        value = emission.expressions.value(substitute_variables(store.value, values))
        write_texel(emission, store, values, f"(float4)({value.text}, 0.0f, 0.0f, 0.0f)")
    else:
        emission.store(store, values, None)


def _packed_row(kernel: Kernel, tensors: Mapping[str, Stored]) -> Var | None:
    """The row axis that fills the lanes of an image output: four rows then belong to one work-item."""
    for store in kernel.stores:
        lane_axis = tensors[store.tensor].layout.lane_axis
        if lane_axis is not None:
            index = store.indices[lane_axis]
            for var in kernel.axes:
                if index == variable(var) and several(var.extent):
                    return var
    return None


def _texel_rows(
    emission: Emission,
    kernel: Kernel,
    rows: tuple[Var, ...],
    packed: Var,
    target: Target,
    tensors: Mapping[str, Stored],
) -> Source:
    """Scalar results of four neighbouring rows make one texel."""
    if any(store.local for store in kernel.stores):
        raise ValueError(f"{kernel.name} writes rows into the lanes of an image")
    outer = tuple(v for v in rows if v is not packed)
    blocks = -(-packed.extent // 4)
    count = math.prod(v.extent for v in outer) * blocks
    item = Var("row", count)
    *places, block = unravel(variable(item), (*(v.extent for v in outer), blocks))
    values = dict(zip(outer, places, strict=True))
    name = emission.expressions.name(item)
    size: tuple[int, ...] = (count,)
    local = (1,) if target.is_cpu else None
    if target.group_items:
        local = (target.group_items,)
        size = (-(-count // local[0]) * local[0],)
        emission.writer.line(f"if (item >= {count}) return;")
    emission.writer.line(f"const int {name} = item;")
    filled = [s for s in kernel.stores if tensors[s.tensor].layout.lane_axis is not None]
    single = [s for s in kernel.stores if s not in filled]
    texts: dict[str, list[str]] = {s.tensor: [] for s in filled}
    for place in range(4):
        results = {s.tensor: emission.expressions.temporary() for s in filled}
        for result in results.values():
            emission.writer.line(f"float {result} = 0.0f;")
        at = add(scale(block, 4), Index(place))
        with emission.expressions.scope(f"if ({emission.expressions.index(at)} < {packed.extent})"):
            here = {**values, packed: at}
            for stage in kernel.stages:
                emission.stage(type(stage)(stage.name, stage.axes, substitute_variables(stage.body, here), stage.dtype))
            for store in filled:
                value = emission.expressions.value(substitute_variables(store.value, here))
                emission.writer.line(f"{results[store.tensor]} = {value.text};")
            for store in single:
                write_single(emission, store, here)
        for tensor, result in results.items():
            texts[tensor].append(result)
    for store in filled:
        write_texel(emission, store, {**values, packed: scale(block, 4)}, f"(float4)({', '.join(texts[store.tensor])})")
    return emission.source("reduction.cl", size, local)
