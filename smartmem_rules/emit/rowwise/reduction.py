"""Row reductions: softmax, normalisations, means, and expressions of the same row that are fused with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.emit.c.kernel import Emission, LocalArray
from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.c.reduction_cse import share_terms
from smartmem_rules.emit.c.team import Team
from smartmem_rules.emit.rowwise.pointwise import emit_pointwise
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import Kernel, Store, Stored
from smartmem_rules.plan.kernel.row_arrays import storage_of
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.schedule.grid import chunk_of
from smartmem_rules.plan.schedule.loops import axes_inside_row, packed_rows, row_form, writes_images
from smartmem_rules.plan.schedule.records import ItemSchedule, TeamSchedule, schedule_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import several
from smartmem_rules.tensor.substitution import substitute, unravel


def emit_reduction(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    kernel = launch.kernel
    form = row_form(kernel, tensors, target.width, launch.block_rows)
    if form == "elements":
        return emit_pointwise(launch, target, tensors)
    emission = Emission(
        launch=launch,
        target=target,
        tensors=tensors,
        width=TEXEL_LANES if writes_images(kernel, tensors) else target.width,
    )
    rows = tuple(v for v in kernel.axes if several(v.extent))
    if form == "texels":
        return _texel_rows(emission, kernel, rows, target, tensors)
    if not target.is_cpu:
        return _team_rows(emission, kernel, rows, target)
    count = math.prod(v.extent for v in rows)
    chunk = launch.block_rows or chunk_of(count, schedule_of(kernel, ItemSchedule).items)
    row = Var("row", count)
    values = dict(zip(rows, unravel(variable(row), tuple(v.extent for v in rows)), strict=True))
    name = emission.expressions.name(row)
    head = f"for (int {name} = item * {chunk}; {name} < min((item + 1) * {chunk}, {count}); ++{name})"
    with emission.expressions.scope(head):
        emit_row(emission, kernel, values)
    return emission.source("reduction.cl", -(-count // chunk))


def _team_rows(emission: Emission, kernel: Kernel, rows: tuple[Var, ...], target: Target) -> Source:
    """On GPUs neighbouring work-items share a row, whose arrays lie in local memory."""
    count = math.prod(v.extent for v in rows)
    schedule = schedule_of(kernel, TeamSchedule)
    size, teams = schedule.team, schedule.teams
    emission.storage = storage_of(kernel.stages, kernel.stores[-1].value) if len(kernel.stores) == 1 else {}
    row = Var("row", count)
    expressions = emission.expressions
    values = dict(zip(rows, unravel(variable(row), tuple(v.extent for v in rows)), strict=True))
    threads = size * teams
    # divisions are cheaper where compilers know that a number is not negative
    mask = f" & {threads - 1}" if threads.bit_count() == 1 else ""
    emission.writer.line(f"const int thread = (int)get_local_id(0){mask};")
    # a team behind the last row repeats it: every work-item has to come to every barrier
    emission.writer.line(f"const int {expressions.name(row)} = min((int)((uint)item / {size}u), {count - 1});")
    if size > 1:
        emission.shared.append(LocalArray("float", "across", size * teams))
        expressions.team = Team(
            size=size,
            lane=f"(thread % {size})",
            thread="thread",
            scratch="across",
            rows=teams,
            row=f"(thread / {size})",
            shuffles=bool(target.device.compute.shuffle),
            subgroup=target.device.compute.subgroup,
            joins_loops=schedule.whole_rows,
        )
    emit_row(emission, kernel, values)
    return emission.source("reduction.cl", -(-count // teams) * teams * size)


def emit_row(emission: Emission, kernel: Kernel, values: dict[Var, Index]) -> None:
    stages, stored = kernel.stages, tuple(store.value for store in kernel.stores)
    if emission.target.is_cpu:
        stages, stored = share_terms(stages, stored, emission.target.device.text)
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
    access = emission.accesses[store.tensor]
    axes = axes_inside_row(store, emission.tensors[store.tensor].layout)
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
            emission.on_first_lane(lambda: write_single(emission, store, {}))
            return
        whole, rest = divmod(along.extent, 4)
        lane, block = Var("lane", 4), Var(f"{along.name}_block", whole)
        if whole:
            with emission.expressions.divided(block, team):
                base = variable(block)
                emission.store(store, {along: add(scale(base, 4), variable(lane))}, lane)
        if rest:
            emission.on_first_lane(lambda: _last_texel(emission, store, along, whole * 4, rest))

    _nest(emission, outer, texels)


def _last_texel(emission: Emission, store: Store, along: Var, start: int, rest: int) -> None:
    texts = [
        emission.expressions.value(substitute_variables(store.value, {along: Index(start + place)})).text
        for place in range(rest)
    ]
    vector = f"(float4)({', '.join(texts + ['0.0f'] * (4 - rest))})"
    emission.texel(store, {along: Index(start)}, vector)


def _nest(emission: Emission, axes: tuple[Var, ...], inner: object) -> None:
    if not axes:
        inner()  # type: ignore[operator]
        return
    with emission.expressions.loop(axes[0]):
        _nest(emission, axes[1:], inner)


def write_single(emission: Emission, store: Store, values: Mapping[Var, Index]) -> None:
    """One element: in a buffer, or in a texel of its own."""
    if emission.accesses[store.tensor].is_image:
        value = emission.expressions.value(substitute_variables(store.value, values))
        emission.texel(store, values, f"(float4)({value.text}, 0.0f, 0.0f, 0.0f)")
    else:
        emission.store(store, values, None)


def _texel_rows(
    emission: Emission,
    kernel: Kernel,
    rows: tuple[Var, ...],
    target: Target,
    tensors: Mapping[str, Stored],
) -> Source:
    """Scalar results of four neighbouring rows make one texel."""
    if any(store.local for store in kernel.stores):
        raise ValueError(f"{kernel.name} writes rows into the lanes of an image")
    packed = packed_rows(kernel, tensors)
    assert packed is not None
    outer = tuple(v for v in rows if v is not packed)
    blocks = -(-packed.extent // 4)
    count = math.prod(v.extent for v in outer) * blocks
    item = Var("row", count)
    *places, block = unravel(variable(item), (*(v.extent for v in outer), blocks))
    values = dict(zip(outer, places, strict=True))
    name = emission.expressions.name(item)
    if target.group_items:
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
        emission.texel(store, {**values, packed: scale(block, 4)}, f"(float4)({', '.join(texts[store.tensor])})")
    return emission.source("reduction.cl", count)
