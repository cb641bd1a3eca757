"""Probes in a plan's file: messages, and one section with the contents of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import SLACK, item_bytes, memory_shape
from smartmem_rules.plan.probe import GIVEN, Answer, Filling, Probe, Rows
from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import DamageError, checksum, section
from smartmem_rules.runtime.format.elements import dtype_of, element, known, span_of
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.primitives import storage_dtype

_ALIGNED = 64


class ProbeWriter:
    """Probes on their way into a file.

    Attributes:
        contents: the bytes of all rows, one array after the other.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._offsets: dict[int, int] = {}
        pieces: list[np.ndarray] = []
        end = 0
        for rows in (rows for probe in probes for rows in _rows(probe)):
            for array in (rows.different, rows.numbers):
                if id(array) in self._offsets:  # probes share rows
                    continue
                raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                self._offsets[id(array)] = end
                padded = np.zeros(-(-(raw.size + SLACK) // _ALIGNED) * _ALIGNED, np.uint8)
                padded[: raw.size] = raw
                pieces.append(padded)
                end += padded.size
        self.contents = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)

    def messages(self, offset: int) -> list[pb.Probe]:
        """The probes, for contents that begin at a byte of the file."""
        return [self._probe(probe, offset) for probe in self._probes]

    def _probe(self, probe: Probe, offset: int) -> pb.Probe:
        return pb.Probe(
            launches=probe.launches,
            fillings=[
                pb.Filling(
                    kind=pb.FillingKind.Value(one.kind.upper()),
                    rows=None if one.rows is None else self._message(one.rows, offset),
                    exponent=one.exponent,
                )
                for one in probe.fillings
            ],
            answers=[
                pb.Answer(argument=one.argument, rows=self._message(one.rows, offset), bound=one.bound)
                for one in probe.answers
            ],
        )

    def _message(self, rows: Rows, offset: int) -> pb.Rows:
        return pb.Rows(
            element=element(rows.different.dtype.name),
            width=rows.different.shape[1],
            count=rows.different.shape[0],
            different=self._section(rows.different, offset),
            numbers=self._section(rows.numbers, offset),
        )

    def _section(self, array: np.ndarray, offset: int) -> pb.Section:
        return pb.Section(offset=offset + self._offsets[id(array)], size=array.nbytes, sum=checksum(array))


def _rows(probe: Probe) -> list[Rows]:
    return [*(one.rows for one in probe.fillings if one.rows is not None), *(one.rows for one in probe.answers)]


def read_probe(message: pb.Probe, plan: Plan, data: Any) -> Probe:
    """A probe of a plan from its message.

    Raises:
        DamageError: it asks for what the plan does not have, or its contents do not fit the tensors.
    """
    launches = tuple(message.launches)
    if not launches or max(launches) >= len(plan.enqueues):
        raise DamageError("a probe is for a launch that is not there")
    arguments = plan.enqueues[launches[0]].source.arguments
    if any(len(plan.enqueues[one].source.arguments) != len(arguments) for one in launches):
        raise DamageError("a probe is for launches of several kinds")
    if len(message.fillings) != len(arguments) or any(one.argument >= len(arguments) for one in message.answers):
        raise DamageError("a probe has contents for other arguments than its kernel")
    tensors = [plan.tensors[one.tensor] for one in arguments]
    return Probe(
        launches=launches,
        fillings=tuple(_read_filling(one, tensor, data) for one, tensor in zip(message.fillings, tensors, strict=True)),
        answers=tuple(
            Answer(argument=one.argument, rows=_read_rows(one.rows, tensors[one.argument], data), bound=one.bound)
            for one in message.answers
        ),
    )


def _read_filling(message: pb.Filling, tensor: Stored, data: Any) -> Filling:
    kind = known(pb.FillingKind, message.kind)
    rows = _read_rows(message.rows, tensor, data) if kind == GIVEN else None
    return Filling(kind=kind, rows=rows, exponent=message.exponent)


def _read_rows(message: pb.Rows, tensor: Stored, data: Any) -> Rows:
    dtype = storage_dtype(dtype_of(message.element))
    spans = span_of(message.different), span_of(message.numbers)
    bytes_of_rows = message.width * message.count * dtype.itemsize
    if not message.width or spans[0].size != bytes_of_rows or spans[1].size % np.dtype(np.int32).itemsize:
        raise DamageError(f"a probe's rows for the tensor {tensor.name!r} have another size")
    different = section(data, spans[0])[: spans[0].size].view(dtype).reshape(message.count, message.width)
    numbers = section(data, spans[1])[: spans[1].size].view(np.int32)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < message.count:
        raise DamageError(f"a probe for the tensor {tensor.name!r} has a row that is not there")
    if any(map(is_symbolic, tensor.type.shape)) or dtype.itemsize != item_bytes(tensor.storage):
        raise DamageError(f"a probe's contents for the tensor {tensor.name!r} are of another kind")
    shape = memory_shape(tensor)
    if math.prod(shape) != numbers.size * message.width:
        raise DamageError(f"a probe's contents for the tensor {tensor.name!r} have another size")
    return Rows(different=different, numbers=numbers, shape=shape)
