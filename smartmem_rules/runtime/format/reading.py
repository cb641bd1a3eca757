"""A plan from the messages of its file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError

from smartmem_rules.graph.endings import Endings, UnrolledLoop
from smartmem_rules.plan.artefact import (
    Argument,
    CountedExtent,
    Demands,
    Enqueue,
    Place,
    Plan,
    Provenance,
    Slot,
    Source,
    Waiting,
)
from smartmem_rules.plan.kernel.launch import Recorded
from smartmem_rules.plan.kernel.model import Kernel, KernelSchedule, Layout, Stored
from smartmem_rules.plan.kernel.storage import SLACK, stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError, Header, Span, check_unused, section
from smartmem_rules.runtime.format.elements import dtype_of, known, span_of
from smartmem_rules.runtime.format.extents import FormulaReader
from smartmem_rules.runtime.format.probes import read_probe
from smartmem_rules.statistics import Statistics
from smartmem_rules.tensor.extents import Dimension
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.types import TensorType

_One = TypeVar("_One")


@dataclass(frozen=True, kw_only=True)
class SavedSchedule(KernelSchedule):
    """The sizes of a kernel of a loaded plan, whose text is there already."""

    saved: Mapping[str, int]

    def sizes(self) -> dict[str, int]:
        return dict(self.saved)


def read_plan(data: Any) -> Plan:
    """The plan of a mapped file, whose constants stay where they are.

    Raises:
        DamageError: the file is no plan, damaged or of another version.
        KeyError, TypeError, ValueError: the report is damaged, though its checksum is right.
    """
    index = pb.Plan()
    header = Header.of(data)
    try:
        index.ParseFromString(header.index(data))
    except DecodeError as error:
        raise DamageError(f"its index is none: {error}") from error
    span = span_of(index.report)
    report = json.loads(section(data, span)[: span.size].tobytes())
    plan = _Reader(index, data).plan(report)
    check_unused(data, header, map(span_of, _sections(index)))
    return plan


def _sections(index: pb.Plan) -> Iterator[pb.Section]:
    """All sections to which an index points; a message without one has an empty one, which covers nothing."""
    yield index.report
    yield from (tensor.packed.section for tensor in index.tensors if tensor.HasField("packed"))
    yield from (binary.section for binary in index.binaries)
    for probe in index.probes:
        for rows in (one.rows for one in (*probe.fillings, *probe.answers) if one.HasField("rows")):
            yield from (rows.different, rows.numbers)


class _Reader:
    """Makes a plan from an index whose digest is right, though every number in it may be wrong."""

    def __init__(self, index: pb.Plan, data: Any) -> None:
        self._index = index
        self._data = data
        self._dimensions = [Dimension(one.name, one.low, one.high) for one in index.dimensions]
        if any(one.low > one.high for one in self._dimensions):
            raise DamageError("a dimension has no range")
        self._given = sum(not one.HasField("counted") for one in index.dimensions)
        if any(not one.HasField("counted") for one in index.dimensions[self._given :]):
            raise DamageError("dimensions of inputs stand behind those that a run counts")
        self._extents = FormulaReader(index.formulas, self._dimensions)
        self._names = [tensor.name for tensor in index.tensors]
        if len(set(self._names)) < len(self._names):
            raise DamageError("two tensors have one name")

    def plan(self, report: Mapping[str, Any]) -> Plan:
        index = self._index
        launches = zip(index.launches, report["launches"], strict=True)
        sizes: dict[str, dict[int, str]] = {}
        for one in index.counts:
            sizes.setdefault(self._tensor_name(one.output), {})[one.axis] = self._tensor_name(one.count)
        plan = Plan(
            model=index.model,
            device=index.target,
            level=index.level,
            dtype=index.dtype,
            inputs=list(map(self._tensor_name, index.inputs)),
            outputs=list(map(self._tensor_name, index.outputs)),
            tensors={one.name: self._stored(one) for one in index.tensors},
            enqueues=[self._enqueue(one, told) for one, told in launches],
            slots=[_slot(one) for one in index.slots],
            placement={one.name: self._place(one.place) for one in index.tensors if one.HasField("place")},
            sizes=sizes,
            endings=self._endings(index.endings) if index.HasField("endings") else None,
            dimensions=tuple(self._dimensions[: self._given]),
            counted=self._counted(),
            statistics=Statistics.of(report["statistics"]),
            provenance=Provenance(
                version=index.provenance.version, model=index.provenance.model, rules=index.provenance.rules
            ),
            demands=_demands(index.demands),
        )
        _check_places(plan)
        return replace(
            plan,
            probes=tuple(read_probe(one, plan, self._data) for one in index.probes),
            unasked={one.launch: one.reason for one in index.unasked},
            binaries={one.key: self._bytes(span_of(one.section)) for one in index.binaries},
        )

    def _counted(self) -> tuple[CountedExtent, ...]:
        found: list[CountedExtent] = []
        for dimension, one in zip(self._dimensions[self._given :], self._index.dimensions[self._given :], strict=True):
            tensor, number = _at(self._index.tensors, one.counted.tensor, "tensor"), one.counted.launches
            scalar = not tensor.shape and tensor.element == pb.INT64 and tensor.layout.memory == pb.BUFFER
            if not scalar or tensor.role not in (pb.OUTPUT, pb.INTERMEDIATE):
                raise DamageError(f"the tensor {tensor.name!r} cannot hold the extent {dimension.name!r}")
            if not (found[-1].launches if found else 0) <= number <= len(self._index.launches):
                raise DamageError(f"the extent {dimension.name!r} is counted by launches that are not there")
            found.append(CountedExtent(dimension, tensor.name, number))
        return tuple(found)

    def _endings(self, endings: pb.Endings) -> Endings:
        number = self._tensor_name(endings.number)
        tensor = _at(self._index.tensors, endings.number, "tensor")
        # a dense buffer of one element
        if number not in map(self._tensor_name, self._index.outputs) or tensor.shape or tensor.element != pb.INT64:
            raise DamageError(f"the tensor {number!r} cannot tell whether loops have ended")
        return Endings(number=number, loops=tuple(UnrolledLoop(one.name, one.steps) for one in endings.loops))

    def _tensor_name(self, number: int) -> str:
        return str(_at(self._names, number, "tensor"))

    def _place(self, place: pb.Place) -> Place:
        _at(self._index.slots, place.slot, "slot")
        return Place(place.slot, place.offset)

    def _stored(self, tensor: pb.Tensor) -> Stored:
        layout = tensor.layout
        return Stored(
            name=tensor.name,
            type=TensorType(dtype_of(tensor.element), self._extents.shape(tensor.shape)),
            layout=Layout(_memory(layout.memory), tuple(layout.order), layout.rows, layout.inner),
            role=known(pb.Role, tensor.role),
            storage=dtype_of(tensor.storage),
            packed=self._packed(tensor.packed) if tensor.HasField("packed") else None,
            shown=self._extents.shape(tensor.shown.extents) if tensor.HasField("shown") else None,
        )

    def _packed(self, packed: pb.Packed) -> np.ndarray:
        span = span_of(packed.section)
        dtype = storage_dtype(dtype_of(packed.element))
        return section(self._data, span)[: span.size].view(dtype).reshape(tuple(packed.shape))

    def _bytes(self, span: Span) -> bytes:
        return section(self._data, span)[: span.size].tobytes()

    def _enqueue(self, launch: pb.Launch, told: Mapping[str, Any]) -> Enqueue:
        source = self._source(launch)
        spares = tuple(
            replace(source, text=_at(self._index.texts, one.text, "text"), entry=one.entry, options=tuple(one.options))
            for one in launch.spares
        )
        return Enqueue(launch=_launch(launch, told), source=source, spares=spares)

    def _source(self, launch: pb.Launch) -> Source:
        return Source(
            entry=launch.entry,
            text=_at(self._index.texts, launch.text, "text"),
            arguments=tuple(
                Argument(self._tensor_name(one.tensor), "write" if one.written else "read") for one in launch.arguments
            ),
            global_size=self._extents.shape(launch.global_size),
            local_size=tuple(launch.local_size) or None,
            options=tuple(launch.options),
            dimensions=tuple(_at(self._dimensions, number, "dimension").name for number in launch.dimensions),
            local_bytes=launch.local_bytes,
            waiting=self._waiting(launch) if launch.HasField("waiting") else None,
        )

    def _waiting(self, launch: pb.Launch) -> Waiting:
        """How a run finds out that the launch has given up; the note lies behind the elements of a tensor."""
        told = launch.waiting
        argument = _at(launch.arguments, told.noted, "argument")
        size = _at(self._index.tensors, argument.tensor, "tensor").bytes
        if not told.steps or not argument.written or not size <= 4 * told.element <= size + SLACK - 4:
            raise DamageError(f"the launch {launch.name!r} has no room for a note")
        return Waiting(noted=told.noted, element=told.element, steps=tuple(told.steps))


def _check_places(plan: Plan) -> None:
    """Each tensor lies inside of its piece of memory."""
    for name, place in plan.placement.items():
        tensor, slot = plan.tensors[name], plan.slots[place.slot]
        if tensor.layout.memory == "image":
            sizes = map(largest, tensor.layout.image_size(tensor.type.shape))
            fits = slot.memory == "image" and all(a <= b for a, b in zip(sizes, slot.size, strict=True))
        else:
            fits = slot.memory == "buffer" and place.offset + stored_bytes(tensor) <= slot.bytes
        if not fits:
            raise DamageError(f"the tensor {name!r} does not fit its piece of memory")


def _at(those: Sequence[_One], number: int, kind: str) -> _One:
    if number >= len(those):
        raise DamageError(f"there is no {kind} {number}")
    return those[number]


def _launch(launch: pb.Launch, told: Mapping[str, Any]) -> Recorded:
    own = told["schedule"]
    kernel = Kernel(
        name=launch.name,
        form=told["form"],
        origin=tuple(told["origin"]),
        moves_only=told["moves_only"],
        reads=tuple(told["reads"]),
        writes=tuple(told["writes"]),
        schedule=own and SavedSchedule(name=own["name"], template=own["template"], saved=dict(own["sizes"])),
        operations=told["operations"],
    )
    return Recorded(kernel=kernel, in_place=dict(told["in_place"]), bytes_moved=told["bytes_moved"])


def _demands(demands: pb.Demands) -> Demands:
    return Demands(
        names=tuple(demands.names),
        types=tuple(demands.types),
        extensions=tuple(demands.extensions),
        capability=tuple(demands.capability) or (0, 0),
        arrays=demands.arrays,
        arrays_capability=tuple(demands.arrays_capability) or (0, 0),
    )


def _slot(slot: pb.Slot) -> Slot:
    storage = dtype_of(slot.storage) if slot.storage else ""
    return Slot(_memory(slot.memory), slot.bytes, (slot.width, slot.height), storage)


def _memory(number: int) -> str:
    return known(pb.Memory, number)
