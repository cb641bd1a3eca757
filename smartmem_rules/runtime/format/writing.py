"""A plan as the messages of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from smartmem_rules.exchange.extents import extent_data
from smartmem_rules.graph.endings import Endings
from smartmem_rules.language.blocks.workarounds import Workaround
from smartmem_rules.plan.artefact import CountedExtent, Demands, Enqueue, Plan, Slot, Waiting
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import Span, placed, write_file
from smartmem_rules.runtime.format.elements import element
from smartmem_rules.runtime.format.extents import FormulaWriter, numbered
from smartmem_rules.runtime.format.probes import ProbeWriter
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.ranges import largest


def write_plan(plan: Plan, workarounds: Sequence[Workaround], stream: IO[bytes]) -> None:
    """Write a plan's file.

    Args:
        workarounds: what programs without the rules are to do about faults of drivers.

    Raises:
        ValueError: a number of the statistics is none that JSON has.
    """
    packed = {t.name: t.packed for t in plan.tensors.values() if t.packed is not None}
    # numpy makes a scalar an array of one axis when it makes it contiguous
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in packed.items()}
    report = json.dumps(_report(plan), allow_nan=False, default=_plain).encode()
    asked = ProbeWriter(plan.probes)
    compiled = [np.frombuffer(binary, np.uint8) for binary in plan.binaries.values()]
    written = [*arrays.values(), *([asked.contents] if plan.probes else []), *compiled]
    spans, report_span = placed(written, report)
    index = _Index(plan, arrays, dict(zip(arrays, spans, strict=False))).message()
    if plan.probes:
        index.probes.extend(asked.messages(spans[len(arrays)].offset))
    index.unasked.extend(pb.Unasked(launch=number, reason=reason) for number, reason in plan.unasked.items())
    ends = spans[len(spans) - len(compiled) :]
    index.binaries.extend(
        pb.Binary(key=key, section=_section(span)) for key, span in zip(plan.binaries, ends, strict=True)
    )
    index.report.CopyFrom(_section(report_span))
    index.workarounds.extend(
        pb.Workaround(effect=one.effect, value=one.value, driver=one.driver, versions=one.versions)
        for one in workarounds
    )
    write_file(stream, written, spans, report, index.SerializeToString(deterministic=True))


class _Index:
    """The index of a plan's file, in the making."""

    def __init__(self, plan: Plan, arrays: Mapping[str, np.ndarray], spans: Mapping[str, Span]) -> None:
        self._plan = plan
        self._arrays = arrays
        self._spans = spans
        self._tensors = numbered(plan.tensors)
        open_ = [*plan.dimensions, *(one.dimension for one in plan.counted)]
        self._dimensions = numbered(dimension.name for dimension in open_)
        own = [source.text for source in plan.sources]
        self._texts = numbered(dict.fromkeys([*own, *(s.text for one in plan.enqueues for s in one.spares)]))
        self._formulas = FormulaWriter(open_)

    def message(self) -> pb.Plan:
        plan = self._plan
        tensors = [self._tensor(tensor) for tensor in plan.tensors.values()]
        launches = list(map(self._launch, plan.enqueues))
        made = plan.provenance
        return pb.Plan(
            model=plan.model,
            target=plan.device,
            level=plan.level,
            dtype=plan.dtype,
            device=plan.statistics.device,
            provenance=pb.Provenance(version=made.version, model=made.model, rules=made.rules),
            dimensions=[
                *(pb.Dimension(name=d.name, low=d.low, high=d.high) for d in plan.dimensions),
                *map(self._counted, plan.counted),
            ],
            formulas=self._formulas.formulas,
            tensors=tensors,
            inputs=[self._tensors[name] for name in plan.inputs],
            outputs=[self._tensors[name] for name in plan.outputs],
            slots=list(map(_slot, plan.slots)),
            texts=list(self._texts),
            launches=launches,
            counts=[
                pb.Count(output=self._tensors[name], axis=axis, count=self._tensors[count])
                for name, axes in plan.sizes.items()
                for axis, count in axes.items()
            ],
            demands=_demands(plan.demands),
            endings=None if plan.endings is None else self._endings(plan.endings),
        )

    def _counted(self, one: CountedExtent) -> pb.Dimension:
        d, counted = one.dimension, pb.Counted(tensor=self._tensors[one.tensor], launches=one.launches)
        return pb.Dimension(name=d.name, low=d.low, high=d.high, counted=counted)

    def _endings(self, endings: Endings) -> pb.Endings:
        loops = [pb.Loop(name=one.name, steps=one.steps) for one in endings.loops]
        return pb.Endings(number=self._tensors[endings.number], loops=loops)

    def _tensor(self, tensor: Stored) -> pb.Tensor:
        image = tensor.layout.memory == "image"
        width, height = map(largest, tensor.layout.image_size(tensor.type.shape)) if image else (0, 0)
        layout = tensor.layout
        place = self._plan.placement.get(tensor.name)
        return pb.Tensor(
            name=tensor.name,
            role=pb.Role.Value(tensor.role.upper()),
            element=element(tensor.type.dtype),
            shape=self._formulas.extents(tensor.type.shape),
            storage=element(tensor.storage),
            layout=pb.Layout(
                memory=pb.Memory.Value(layout.memory.upper()), order=layout.order, rows=layout.rows, inner=layout.inner
            ),
            bytes=stored_bytes(tensor),
            width=width,
            height=height,
            shown=None if tensor.shown is None else pb.Shape(extents=self._formulas.extents(tensor.shown)),
            packed=self._packed(tensor.name),
            place=None if place is None else pb.Place(slot=place.slot, offset=place.offset),
        )

    def _packed(self, name: str) -> pb.Packed | None:
        if name not in self._arrays:
            return None
        array = self._arrays[name]
        return pb.Packed(section=_section(self._spans[name]), element=element(array.dtype.name), shape=array.shape)

    def _launch(self, enqueue: Enqueue) -> pb.Launch:
        launch, source = enqueue.launch, enqueue.source
        return pb.Launch(
            name=launch.name,
            ordered=launch.form == "ordered",
            text=self._texts[source.text],
            entry=source.entry,
            options=source.options,
            arguments=[
                pb.Argument(tensor=self._tensors[one.tensor], written=one.access == "write") for one in source.arguments
            ],
            dimensions=[self._dimensions[name] for name in source.dimensions],
            global_size=self._formulas.extents(source.global_size),
            local_size=source.local_size or (),
            spares=[
                pb.Spare(text=self._texts[one.text], entry=one.entry, options=one.options) for one in enqueue.spares
            ],
            local_bytes=source.local_bytes,
            waiting=None if source.waiting is None else _waiting(source.waiting),
        )


def _demands(demands: Demands) -> pb.Demands:
    return pb.Demands(
        names=demands.names,
        types=demands.types,
        extensions=demands.extensions,
        capability=demands.capability,
        arrays=demands.arrays,
        arrays_capability=demands.arrays_capability,
    )


def _waiting(waiting: Waiting) -> pb.Waiting:
    return pb.Waiting(noted=waiting.noted, element=waiting.element, steps=waiting.steps)


def _section(span: Span) -> pb.Section:
    return pb.Section(offset=span.offset, size=span.size, sum=span.sum)


def _slot(slot: Slot) -> pb.Slot:
    return pb.Slot(
        memory=pb.Memory.Value(slot.memory.upper()),
        bytes=slot.bytes,
        width=slot.size[0],
        height=slot.size[1],
        storage=element(slot.storage or "element_none"),
    )


def _report(plan: Plan) -> dict[str, Any]:
    return {"statistics": plan.statistics.data(), "launches": [_launch_data(launch) for launch in plan.launches]}


def _launch_data(launch: Launch) -> dict[str, Any]:
    kept = ("form", "origin", "moves_only", "reads", "writes", "bytes_moved", "operations", "in_place")
    own = launch.schedule
    schedule = None if own is None else {"name": own.name, "template": own.template, "sizes": own.sizes()}
    return {key: getattr(launch, key) for key in kept} | {"schedule": schedule}


def _plain(value: Any) -> Any:
    if is_symbolic(value):
        return extent_data(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)
