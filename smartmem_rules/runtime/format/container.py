"""What stands around a plan's index: the header with its digests, and sections that begin with pages."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.kernel.storage import ALIGNMENT, SLACK
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.mapped_pages import forget_pages

MAGIC = b"\x89SMP\r\n\x1a\n"
VERSION = 9
HEADER_BYTES = 128
PAGE = 4096
_FIELDS = struct.Struct("<8sIIQQQ32sI20x")
_DIGEST = 32
_CHUNK = 1 << 24
_OLD = b"PK\x03\x04"


class PlanFileError(SmartmemError):
    """A file is no plan, is damaged, or is of another version; the message says which."""


class DamageError(SmartmemError):
    """Something in a plan's file cannot be; the message says what."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Bytes of the file: where they begin, how many they are, and their checksum."""

    offset: int
    size: int
    sum: int


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a plan's file begins with.

    Attributes:
        file_bytes: the size of the whole file.
        digest: SHA-256 of the index.
        alignment: bytes at multiples of which tensors begin in the memory that kernels are given.
    """

    file_bytes: int
    index_offset: int
    index_bytes: int
    digest: bytes
    alignment: int = ALIGNMENT

    def packed(self) -> bytes:
        """The bytes of the header, the last of which are SHA-256 of those before."""
        places = (self.file_bytes, self.index_offset, self.index_bytes)
        fields = _FIELDS.pack(MAGIC, VERSION, HEADER_BYTES, *places, self.digest, self.alignment)
        return fields + hashlib.sha256(fields).digest()

    @staticmethod
    def of(data: Any) -> Header:
        """The header of a mapped file, checked against itself and the size of the file.

        Raises:
            DamageError: it is none, or damaged, or of another version.
        """
        start = bytes(data[:HEADER_BYTES])
        if start.startswith(_OLD):
            raise DamageError(f"the plan is of an older version, this program reads version {VERSION}")
        if not start.startswith(MAGIC):
            raise DamageError("it does not begin as one")
        if len(start) < HEADER_BYTES:
            raise DamageError("its header is cut off")
        _, version, header, size, offset, index, digest, alignment = _FIELDS.unpack(start[:-_DIGEST])
        if version != VERSION:
            raise DamageError(f"the plan has version {version}, this program reads version {VERSION}")
        if hashlib.sha256(start[:-_DIGEST]).digest() != start[-_DIGEST:] or header != HEADER_BYTES:
            raise DamageError("the digest of its header is another one")
        if size != len(data):
            raise DamageError(f"it has {len(data)} bytes and says {size}")
        if not HEADER_BYTES <= offset <= size or index > size - offset:
            raise DamageError("its index lies outside of the file")
        if alignment < 1 or ALIGNMENT % alignment:
            raise DamageError(f"its kernels need memory at multiples of {alignment} bytes, and get it at {ALIGNMENT}")
        return Header(file_bytes=size, index_offset=offset, index_bytes=index, digest=digest, alignment=alignment)

    def index(self, data: Any) -> bytes:
        """The index of the mapped file.

        Raises:
            DamageError: it is damaged.
        """
        found = bytes(data[self.index_offset : self.index_offset + self.index_bytes])
        if hashlib.sha256(found).digest() != self.digest:
            raise DamageError("the digest of its index is another one")
        return found


def checksum(array: np.ndarray) -> int:
    """The sum of the bytes as 64-bit numbers, modulo 2**64: as fast as memory, and it sees every damaged byte."""
    raw = array.reshape(-1).view(np.uint8)
    whole = raw.size // 8 * 8
    total = int(np.add.reduce(raw[:whole].view(np.uint64), dtype=np.uint64)) if whole else 0
    return (total + int.from_bytes(raw[whole:].tobytes(), "little")) % 2**64


def placed(arrays: Sequence[np.ndarray], report: bytes) -> tuple[list[Span], Span]:
    """Where the constants and the report of a plan lie in its file: constants at pages, room behind the last one."""
    spans: list[Span] = []
    end = HEADER_BYTES
    for array in arrays:
        start = -(-end // PAGE) * PAGE
        spans.append(Span(offset=start, size=array.nbytes, sum=checksum(array)))
        end = start + array.nbytes + SLACK
    text = np.frombuffer(report, np.uint8)
    return spans, Span(offset=end, size=len(report), sum=checksum(text))


def write_file(
    stream: IO[bytes], arrays: Sequence[np.ndarray], spans: Sequence[Span], report: bytes, index: bytes
) -> None:
    """Write header, constants, report and index; nothing is sought, so any stream will do.

    Args:
        arrays: contiguous, as `spans` of `placed` say.
    """
    end = HEADER_BYTES
    for array, span in zip(arrays, spans, strict=True):
        end = span.offset + array.nbytes + SLACK
    offset = end + len(report)
    digest = hashlib.sha256(index).digest()
    size = offset + len(index)
    header = Header(file_bytes=size, index_offset=offset, index_bytes=len(index), digest=digest)
    at = stream.write(header.packed())
    for array, span in zip(arrays, spans, strict=True):
        at += stream.write(bytes(span.offset - at))
        raw = array.reshape(-1).view(np.uint8)
        for start in range(0, raw.size, _CHUNK):
            at += stream.write(raw[start : start + _CHUNK].data)
    stream.write(bytes(end - at))
    stream.write(report)
    stream.write(index)


def section(data: Any, span: Span) -> np.ndarray:
    """The bytes of a section of a mapped file and the `SLACK` bytes behind them.

    Raises:
        DamageError: it lies outside of the file, or its checksum is another one.
    """
    size = len(data)
    if span.offset > size or span.size > size - span.offset or size - span.offset - span.size < SLACK:
        raise DamageError(f"{span.size} bytes from byte {span.offset} on lie outside of the file")
    reachable = np.frombuffer(data, np.uint8, span.size + SLACK, span.offset)
    if checksum(reachable[: span.size]) != span.sum:
        raise DamageError(f"the checksum of {span.size} bytes from byte {span.offset} on is another one")
    forget_pages(reachable)  # a plan that shares its weights with another one may never use them
    return reachable


def check_unused(data: Any, header: Header, spans: Iterable[Span]) -> None:
    """What belongs to no section of a mapped file is zeros, as it was written; each byte is someone's so, or checked.

    Raises:
        DamageError: a byte between the sections is another one.
    """
    end = HEADER_BYTES
    used = sorted((span.offset, span.size) for span in spans)
    for offset, size in [*used, (header.index_offset, header.index_bytes), (header.file_bytes, 0)]:
        unused = np.frombuffer(data, np.uint8, max(0, min(offset, header.file_bytes) - end), end)
        if unused.any():
            raise DamageError(f"there are {unused.size} bytes of no section from byte {end} on that are not zeros")
        end = min(max(end, offset + size), header.file_bytes)
