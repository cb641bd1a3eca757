"""Plan files with other content behind right digests, as only a hostile or broken program writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import Message

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.container import HEADER_BYTES, Header

Change = Callable[[pb.Plan], Any]


def index_of(data: bytes) -> pb.Plan:
    """The index of a whole plan file."""
    index = pb.Plan()
    index.ParseFromString(Header.of(data).index(data))
    return index


def with_index(data: bytes, index: bytes) -> bytes:
    """The file with another index, digests and sizes as they have to be."""
    header = Header.of(data)
    made = Header(
        file_bytes=header.index_offset + len(index),
        index_offset=header.index_offset,
        index_bytes=len(index),
        digest=hashlib.sha256(index).digest(),
    )
    return made.packed() + data[HEADER_BYTES : header.index_offset] + index


def resealed(data: bytes, change: Change) -> bytes:
    """The file with a changed index."""
    index = index_of(data)
    change(index)
    return with_index(data, index.SerializeToString(deterministic=True))


def with_header(data: bytes, fields: bytes) -> bytes:
    """The file with other fields of the header (all but its digest)."""
    return fields + hashlib.sha256(fields).digest() + data[HEADER_BYTES:]


def unused_bytes(data: bytes) -> list[int]:
    """The places of a whole plan file that belong to no part of it."""
    index = index_of(data)
    sections = [index.report, *(one.packed.section for one in index.tensors if one.HasField("packed"))]
    contents = [one.rows for probe in index.probes for one in (*probe.fillings, *probe.answers)]
    sections += [section for rows in contents for section in (rows.different, rows.numbers)]
    sections += [one.section for one in index.binaries]
    used = bytearray(len(data))
    for start, end in [
        (0, HEADER_BYTES),
        (Header.of(data).index_offset, len(data)),
        *((one.offset, one.offset + one.size) for one in sections),
    ]:
        used[start:end] = bytes([1]) * (end - start)
    return [at for at, byte in enumerate(used) if not byte]


def with_byte(data: bytes, at: int) -> bytes:
    """The file with another byte."""
    return data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


def numbers(message: Message) -> Iterator[tuple[Message, str, int | None]]:
    """All numbers that are set in a message: the message that holds each, its field, its place where it is repeated."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from numbers(inner)
        elif field.type not in (field.TYPE_STRING, field.TYPE_BYTES):
            places = range(len(value)) if field.is_repeated else [None]
            yield from ((message, field.name, place) for place in places)
